// The list of games: all 104 that ale-py 0.12.1 plays with one player, in alphabetical order of
// their ROM ids, then those that multi-agent-ale-py 0.1.12 plays with two and with four.
#pragma once

#include "games/adventure.h"
#include "games/air_raid.h"
#include "games/alien.h"
#include "games/amidar.h"
#include "games/assault.h"
#include "games/asterix.h"
#include "games/asteroids.h"
#include "games/atlantis.h"
#include "games/atlantis2.h"
#include "games/backgammon.h"
#include "games/bank_heist.h"
#include "games/basic_math.h"
#include "games/battle_zone.h"
#include "games/beam_rider.h"
#include "games/berzerk.h"
#include "games/blackjack.h"
#include "games/bowling.h"
#include "games/boxing.h"
#include "games/breakout.h"
#include "games/carnival.h"
#include "games/casino.h"
#include "games/centipede.h"
#include "games/chopper_command.h"
#include "games/combat.h"
#include "games/crazy_climber.h"
#include "games/crossbow.h"
#include "games/darkchambers.h"
#include "games/defender.h"
#include "games/demon_attack.h"
#include "games/donkey_kong.h"
#include "games/double_dunk.h"
#include "games/earthworld.h"
#include "games/elevator_action.h"
#include "games/enduro.h"
#include "games/entombed.h"
#include "games/et.h"
#include "games/fishing_derby.h"
#include "games/flag_capture.h"
#include "games/freeway.h"
#include "games/frogger.h"
#include "games/frostbite.h"
#include "games/galaxian.h"
#include "games/gopher.h"
#include "games/gravitar.h"
#include "games/hangman.h"
#include "games/haunted_house.h"
#include "games/hero.h"
#include "games/human_cannonball.h"
#include "games/ice_hockey.h"
#include "games/jamesbond.h"
#include "games/journey_escape.h"
#include "games/joust.h"
#include "games/kaboom.h"
#include "games/kangaroo.h"
#include "games/keystone_kapers.h"
#include "games/king_kong.h"
#include "games/klax.h"
#include "games/koolaid.h"
#include "games/krull.h"
#include "games/kung_fu_master.h"
#include "games/laser_gates.h"
#include "games/lost_luggage.h"
#include "games/mario_bros.h"
#include "games/maze_craze.h"
#include "games/miniature_golf.h"
#include "games/montezuma_revenge.h"
#include "games/mr_do.h"
#include "games/ms_pacman.h"
#include "games/name_this_game.h"
#include "games/othello.h"
#include "games/pacman.h"
#include "games/phoenix.h"
#include "games/pitfall.h"
#include "games/pitfall2.h"
#include "games/pong.h"
#include "games/pooyan.h"
#include "games/private_eye.h"
#include "games/qbert.h"
#include "games/riverraid.h"
#include "games/road_runner.h"
#include "games/robotank.h"
#include "games/seaquest.h"
#include "games/sir_lancelot.h"
#include "games/skiing.h"
#include "games/solaris.h"
#include "games/space_invaders.h"
#include "games/space_war.h"
#include "games/star_gunner.h"
#include "games/superman.h"
#include "games/surround.h"
#include "games/tennis.h"
#include "games/tetris.h"
#include "games/tic_tac_toe_3d.h"
#include "games/time_pilot.h"
#include "games/trondead.h"
#include "games/turmoil.h"
#include "games/tutankham.h"
#include "games/up_n_down.h"
#include "games/venture.h"
#include "games/video_checkers.h"
#include "games/video_chess.h"
#include "games/video_cube.h"
#include "games/video_pinball.h"
#include "games/warlords.h"
#include "games/wizard_of_wor.h"
#include "games/word_zapper.h"
#include "games/yars_revenge.h"
#include "games/zaxxon.h"

// clang-format off
#define CULE_FOR_EACH_GAME(X) \
  X(Adventure) X(AirRaid) X(Alien) X(Amidar) X(Assault) X(Asterix) X(Asteroids) X(Atlantis) \
  X(Atlantis2) X(Backgammon) X(BankHeist) X(BasicMath) X(BattleZone) X(BeamRider) X(Berzerk) \
  X(Blackjack) X(Bowling) X(Boxing) X(Breakout) X(Carnival) X(Casino) X(Centipede) \
  X(ChopperCommand) X(CrazyClimber) X(Crossbow) X(Darkchambers) X(Defender) X(DemonAttack) \
  X(DonkeyKong) X(DoubleDunk) X(Earthworld) X(ElevatorAction) X(Enduro) X(Entombed) X(Et) \
  X(FishingDerby) X(FlagCapture) X(Freeway) X(Frogger) X(Frostbite) X(Galaxian) X(Gopher) \
  X(Gravitar) X(Hangman) X(HauntedHouse) X(Hero) X(HumanCannonball) X(IceHockey) X(Jamesbond) \
  X(JourneyEscape) X(Kaboom) X(Kangaroo) X(KeystoneKapers) X(KingKong) X(Klax) X(Koolaid) X(Krull) \
  X(KungFuMaster) X(LaserGates) X(LostLuggage) X(MarioBros) X(MiniatureGolf) X(MontezumaRevenge) \
  X(MrDo) X(MsPacman) X(NameThisGame) X(Othello) X(Pacman) X(Phoenix) X(Pitfall) X(Pitfall2) \
  X(Pong) X(Pooyan) X(PrivateEye) X(Qbert) X(Riverraid) X(RoadRunner) X(Robotank) X(Seaquest) \
  X(SirLancelot) X(Skiing) X(Solaris) X(SpaceInvaders) X(SpaceWar) X(StarGunner) X(Superman) \
  X(Surround) X(Tennis) X(Tetris) X(TicTacToe3d) X(TimePilot) X(Trondead) X(Turmoil) X(Tutankham) \
  X(UpNDown) X(Venture) X(VideoCheckers) X(VideoChess) X(VideoCube) X(VideoPinball) X(WizardOfWor) \
  X(WordZapper) X(YarsRevenge) X(Zaxxon) \
  X(BackgammonOfTwo) X(BoxingOfTwo) X(CombatOfTwo) X(DoubleDunkOfTwo) X(EntombedOfTwo) \
  X(FishingDerbyOfTwo) X(FlagCaptureOfTwo) X(IceHockeyOfTwo) X(JoustOfTwo) X(MarioBrosOfTwo) \
  X(MazeCrazeOfTwo) X(OthelloOfTwo) X(PongOfTwo) X(SpaceInvadersOfTwo) X(SpaceWarOfTwo) \
  X(SurroundOfTwo) X(TennisOfTwo) X(VideoCheckersOfTwo) X(WarlordsOfTwo) X(WizardOfWorOfTwo) \
  X(PongOfFour) X(WarlordsOfFour)
// clang-format on

namespace cule {

#define CULE_INDEX(game) kIndexOf##game,
enum GameIndex : uint32_t { CULE_FOR_EACH_GAME(CULE_INDEX) kNumGames };
#undef CULE_INDEX

// Calls `visit(G{})` with the game at `index` of the list.
template <class Visit>
CULE_HD inline void with_game(uint32_t index, Visit&& visit) {
  switch (index) {
#define CULE_VISIT(game) \
  case kIndexOf##game: return visit(games::game{});
    CULE_FOR_EACH_GAME(CULE_VISIT)
#undef CULE_VISIT
    default: return;
  }
}

// The index of a game that is known at compile time, so that no code is made for other games.
template <uint32_t kIndex>
struct KnownGame {};
template <uint32_t kIndex, class Visit>
CULE_HD inline void with_game(KnownGame<kIndex>, Visit&& visit) {
#define CULE_VISIT(game) \
  if constexpr (kIndex == kIndexOf##game) visit(games::game{});
  CULE_FOR_EACH_GAME(CULE_VISIT)
#undef CULE_VISIT
}

}  // namespace cule
