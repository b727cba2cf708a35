// The games: all 104 that ale-py 0.12.1 plays with one player, in alphabetical order of their ROM
// ids. The list is that of the includes: each header ends with `CULE_LIST_GAME`, which gives its
// game the next index.
#pragma once

#include "games/game.h"

namespace cule::games {

// Has as `type` the game of an index.
template <uint32_t kIndex>
struct GameAt;

constexpr uint32_t kBeforeFirst = __COUNTER__;

}  // namespace cule::games

#define CULE_LIST_GAME(game)                              \
  template <>                                             \
  struct GameAt<uint32_t{__COUNTER__} - kBeforeFirst - 1> { \
    using type = game;                                    \
  }

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
#include "games/wizard_of_wor.h"
#include "games/word_zapper.h"
#include "games/yars_revenge.h"
#include "games/zaxxon.h"

#undef CULE_LIST_GAME

namespace cule {

constexpr uint32_t kNumGames = uint32_t{__COUNTER__} - games::kBeforeFirst - 1;

// The index of a game that is known at compile time, so that no code is made for other games.
template <uint32_t kIndex>
struct KnownGame {};

// Calls `visit(G{})` with a game, if there is one of this index.
template <uint32_t kIndex, class Visit>
CULE_INLINE void with_game(KnownGame<kIndex>, Visit&& visit) {
  if constexpr (kIndex < kNumGames) visit(typename games::GameAt<kIndex>::type{});
}

// The same for an index that is known when the program runs. It has code for all games, so it is
// never inlined.
template <class Visit>
CULE_COLD void with_game(uint32_t index, Visit&& visit) {
  static_assert(kNumGames <= 128, "with_game has cases for 128 games");
#define CULE_CASE(n) \
  case n: return with_game(KnownGame<n>{}, visit);
#define CULE_CASES_4(n) CULE_CASE(n) CULE_CASE(n + 1) CULE_CASE(n + 2) CULE_CASE(n + 3)
#define CULE_CASES_16(n) \
  CULE_CASES_4(n) CULE_CASES_4(n + 4) CULE_CASES_4(n + 8) CULE_CASES_4(n + 12)
  switch (index) {
    CULE_CASES_16(0)
    CULE_CASES_16(16)
    CULE_CASES_16(32)
    CULE_CASES_16(48)
    CULE_CASES_16(64)
    CULE_CASES_16(80)
    CULE_CASES_16(96)
    CULE_CASES_16(112)
    default: return;
  }
#undef CULE_CASES_16
#undef CULE_CASES_4
#undef CULE_CASE
}

}  // namespace cule
