// What is played between the start of an episode and its first step.
//
// As in ale-py (EpisodeStart::kAle): one frame of FIRE, then no-ops; after a lost life nothing.
//
// As in EnvPool (kEnvpool): no-ops, then one frame of FIRE. After a lost life the same, on top of
// the stack of before.
//
// As in the wrappers of OpenAI baselines, which stable-baselines3 has, too (kBaselines): a game
// starts with at least one no-op of a frame (NoopResetEnv), a life with a step of no-ops
// (EpisodicLifeEnv); then both with a step of FIRE and one of the third action (FireResetEnv). A
// game that ends meanwhile, or a life that is lost in one of the latter two, is started anew.
//
// With kFire a game starts as in ale-py, and a life with one frame of FIRE and a fresh stack.
#pragma once

#include "kernels/batch.h"

namespace cule {

// What is pressed, if the game has FIRE and the user asks for it.
struct StartButtons {
  bool fire;
  uint32_t third;  // the third action that the env offers
};

// What a start has led to.
struct EpisodeBegun {
  bool new_game;
  bool last_two;  // the first observation is the maximum of the last two frames
};

// The least number that is drawn for the no-ops; the greatest is one below noop_max.
CULE_INLINE int least_noops(const StepOptions& options) {
  return start_of(options) == EpisodeStart::kBaselines && options.noop_max > 1;
}
// That number, by `below`, which gives a random number below another one.
template <class Below>
CULE_HD int draw_noops(const StepOptions& options, const Below& below) {
  const uint32_t least = static_cast<uint32_t>(least_noops(options));
  const uint32_t end = options.noop_max > 0 ? static_cast<uint32_t>(options.noop_max) : 1;
  return static_cast<int>(least + below(end - least));
}
// How many no-ops are played if `drawn` was drawn. In ale-py FIRE is one of them. In EnvPool there
// is one more, unless that is FIRE.
CULE_INLINE int noops_of(const StepOptions& options, bool fire, int drawn) {
  switch (start_of(options)) {
    case EpisodeStart::kBaselines: return drawn;
    case EpisodeStart::kEnvpool: return drawn + !fire;
    default: return drawn > fire ? drawn - fire : 0;
  }
}

// Plays no-ops, up to number `noops`, of which `played` have been played already. If the game ends
// meanwhile, a new one starts. Returns whether it did; if games are not emulated, it is then due.
template <class AnySession>
CULE_HD bool play_noops(AnySession& session, int played, int noops, bool emulates_games = true) {
  bool new_game = false;
  for (int i = played; i < noops; ++i) {
    session.act(kNoop);
    if (!session.game.terminal) continue;
    if (!emulates_games) return true;
    session.start_episode();
    new_game = true;
  }
  return new_game;
}

// Sets the state from which the first step begins.
template <class AnySession>
CULE_HD void end_of_start(AnySession& session, int32_t elapsed_frames = 0) {
  session.env.lives = lives_of(session.config.game, session.game);
  session.env.elapsed_frames = elapsed_frames;
  session.env.over = 0;
}

// Plays the start of a new game as ale-py does, or without FIRE.
template <class AnySession>
CULE_HD void start_with_noops(AnySession& session, bool fire, int noops) {
  session.start_episode();
  if (fire) session.press_fire();
  play_noops(session, 0, noops);
  end_of_start(session);
}

// Plays what comes after the no-ops in EnvPool, or at the start of a life with kFire.
template <class AnySession>
CULE_HD void end_with_fire(AnySession& session, bool fire, int32_t elapsed_frames) {
  if (fire) session.act(kFire);
  end_of_start(session, elapsed_frames);
}
// Plays the start of a new game or life as EnvPool does. If the game ends in a life's start, the
// limit of frames stays that of the old one.
template <class AnySession>
CULE_HD EpisodeBegun start_as_envpool(AnySession& session, bool fire, bool new_game,
                                      bool emulates_games, int noops) {
  if (new_game) session.start_episode();
  const bool again = play_noops(session, 0, noops, emulates_games);
  end_with_fire(session, fire, new_game ? 0 : session.env.elapsed_frames);
  return {new_game || again, false};
}

// The start of an episode as OpenAI baselines' wrappers play it, one function for each.
template <class AnySession, class DrawNoops>
struct BaselinesStart {
  AnySession& session;
  const StepOptions& options;
  const StartButtons buttons;
  const bool emulates_games;  // if not, the start ends where a new game is due
  const DrawNoops& draw_noops;
  EpisodeBegun begun;

  CULE_HD bool is_complete() const { return begun.new_game && !emulates_games; }
  CULE_HD int lives() const { return lives_of(session.config.game, session.game); }

  // NoopResetEnv.reset
  CULE_HD void start_game() {
    begun = {true, false};
    if (emulates_games) start_with_noops(session, false, draw_noops());
  }

  // MaxAndSkipEnv.step. Returns whether the game goes on.
  CULE_HD bool hold(uint32_t action) {
    begun.last_two = pools_frames(options);
    for (int i = 0; i < options.frameskip; ++i) {
      session.act(action);
      ++session.env.elapsed_frames;
      // The frames of a new game's start do not count.
      const bool cut_off = !begun.new_game && session.env.elapsed_frames >= options.max_frames;
      if (session.game.terminal || cut_off) return false;
    }
    return true;
  }

  // EpisodicLifeEnv.reset
  CULE_HD void start_life(bool game_over) {
    if (game_over || !hold(kNoop)) start_game();
    session.env.lives = lives();
  }

  // EpisodicLifeEnv.step, and the reset that follows if it reports an end.
  CULE_HD void press(uint32_t action) {
    if (is_complete()) return;
    const bool goes_on = hold(action);
    const int before = session.env.lives, now = session.env.lives = lives();
    const bool life_lost = options.life_loss_info && now > 0 && now < before;
    if (!goes_on || life_lost) start_life(!goes_on);
  }

  // FireResetEnv.reset, after the reset of what it wraps.
  CULE_HD void press_buttons() {
    if (buttons.fire) press(kFire);
    if (buttons.fire) press(buttons.third);
    end_of_start(session, begun.new_game ? 0 : session.env.elapsed_frames);
  }
};

// Plays the start of a new game, or of the next life, until its first step. `draw_noops()` gives
// the number of no-ops.
template <class AnySession, class DrawNoops>
CULE_HD EpisodeBegun start_episode(AnySession& session, const StepOptions& options,
                                   StartButtons buttons, bool new_game, bool emulates_games,
                                   const DrawNoops& draw_noops) {
  switch (start_of(options)) {
    case EpisodeStart::kBaselines: {
      BaselinesStart<AnySession, DrawNoops> start{session,        options,    buttons,
                                                  emulates_games, draw_noops, {}};
      start.start_life(new_game);
      start.press_buttons();
      return start.begun;
    }
    case EpisodeStart::kEnvpool:
      return start_as_envpool(session, buttons.fire, new_game, emulates_games, draw_noops());
    case EpisodeStart::kFire:
      if (new_game) start_with_noops(session, buttons.fire, draw_noops());
      else end_with_fire(session, buttons.fire, session.env.elapsed_frames);
      return {new_game, false};
    default: start_with_noops(session, buttons.fire, draw_noops()); return {true, false};
  }
}

// Plays what the start of a new game has after its no-ops. If the game ends meanwhile, the next one
// begins with `draw_noops()` of them.
template <class AnySession, class DrawNoops>
CULE_HD void end_game_start(AnySession& session, const StepOptions& options, StartButtons buttons,
                            const DrawNoops& draw_noops) {
  const EpisodeStart as = start_of(options);
  if (as == EpisodeStart::kEnvpool) end_with_fire(session, buttons.fire, 0);
  if (as != EpisodeStart::kBaselines) return;
  BaselinesStart<AnySession, DrawNoops> start{session, options,    buttons,
                                              true,    draw_noops, {true, false}};
  start.press_buttons();
}

}  // namespace cule
