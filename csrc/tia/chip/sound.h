// The TIA's two sound channels, and the samples that ale-py makes of them.
//
// A channel counts down from its frequency (AUDFx). Each time it is through, it moves a register of
// four bits on, as its control (AUDCx) says: by a polynomial, by a division, or only when a second
// register, of five bits, lets it. While the highest of the four bits is set, the channel is as
// loud as its volume (AUDVx) says.
//
// Source: Stella Programmer's Guide, "Audio"; order and start of the registers as in ale-py, which
// knows no times: a frame has 512 samples, one for each count, and all of them are made of what the
// program has written by the frame's end. On the hardware a write counts at once.
#pragma once

#include "tia/chip/registers.h"

namespace cule {

constexpr int kSoundChannels = 2, kFrameSamples = 512, kSampleBits = 32;
constexpr int kFrameWords = kFrameSamples / kSampleBits;
constexpr uint32_t kFirstSoundRegister = tia_write::AUDC0, kSoundRegisters = 6;
constexpr uint32_t kSilence = 0x80808080;  // four samples of a channel that is off

CULE_INLINE constexpr bool is_sound(uint32_t reg) {
  return reg >= kFirstSoundRegister && reg < kFirstSoundRegister + kSoundRegisters;
}

// Both registers, and how far the count is. What power-on leaves is zeros: 1 is subtracted from the
// registers, as from 0 to their highest bit.
struct SoundChannel {
  uint8_t four, five, count, unused;
};
struct alignas(4) SoundState {
  uint8_t registers[8];  // AUDC0 to AUDV1 as the program last wrote them; two bytes are 0
  SoundChannel channels[kSoundChannels];
};
static_assert(sizeof(SoundState) == 16, "a SoundState must be copied by words");

// All six registers in a word; kNothingHeard: a frame that was not played.
constexpr uint32_t kNothingHeard = ~0u;
CULE_INLINE uint32_t heard_registers(const SoundState& state) {
  const uint8_t* at = state.registers;
  return (at[0] & 0x0Fu) | (at[1] & 0x0Fu) << 4 | (at[2] & 0x1Fu) << 8 | (at[3] & 0x1Fu) << 13 |
         (at[4] & 0x0Fu) << 18 | (at[5] & 0x0Fu) << 22;
}
CULE_INLINE uint32_t control_of(uint32_t heard, int channel) { return heard >> 4 * channel & 0x0F; }
CULE_INLINE int32_t frequency_of(uint32_t heard, int channel) {
  return static_cast<int32_t>(heard >> (8 + 5 * channel) & 0x1F);
}
CULE_INLINE uint32_t volume_of(uint32_t heard, int channel) {
  return heard >> (18 + 4 * channel) & 0x0F;
}

// The registers of four and of five bits.
struct Polynomials {
  uint32_t four, five;
};
CULE_INLINE uint32_t next_of_four(uint32_t four) {
  return four ? (four << 1 & 0x0F) | ((four >> 3 ^ four >> 2) & 1) : 1;
}
CULE_INLINE uint32_t next_of_five(uint32_t five) {
  return five ? (five << 1 & 0x1F) | ((five >> 4 ^ five >> 2) & 1) : 1;
}
// Both as one register of nine bits.
CULE_INLINE Polynomials next_of_nine(Polynomials p) {
  const uint32_t in = (p.four | p.five) ? (p.four >> 3 ^ p.five >> 4) & 1 : 1;
  return {(p.four << 1 & 0x0F) | p.five >> 4, (p.five << 1 & 0x1F) | in};
}

// What a channel does when its count is through. Bits 0 and 1 of `control` say when the four bits
// move on, bits 2 and 3 how.
CULE_INLINE Polynomials next_of(uint32_t control, Polynomials p) {
  constexpr uint32_t kSet = 0, kNine = 8, kFive = 9, kFiveByDivision = 10, kSetToo = 11;
  if (control == kNine) return next_of_nine(p);
  const bool sets = control == kSet || control == kSetToo;
  const uint32_t oldest = p.five >> 4;
  bool moves = true;
  if (!sets && (control & 2 || control == kFive)) {
    p.five = next_of_five(p.five);
    // When the five bits have one of two values (a division by 31), or when their highest is set.
    if (control & 2) moves = control & 1 ? p.five >> 4 : (p.five & 0x0F) == 8;
  }
  if (!moves) return p;
  const uint32_t four = p.four, shifted = four << 1 & 0x0F;
  switch (control >> 2) {
    case 0: p.four = sets ? shifted | 1 : next_of_four(four); break;
    case 1: p.four = shifted | (~four & 1); break;  // a division by 2
    case 2:
      p.four = shifted | (control == kFive ? oldest : control == kFiveByDivision ? p.five >> 4 : 1);
      break;
    default:  // a division by 6
      p.four = (~four << 1 & 0x0E) | (!(four & 4) && (four & 3));
  }
  return p;
}

// Whether a channel is loud, a bit for each sample of a frame.
using SoundBits = uint32_t[kFrameWords];

// Plays a channel for a frame.
CULE_INLINE void play_channel(SoundChannel& channel, uint32_t heard, int number, SoundBits& loud) {
  const uint32_t control = control_of(heard, number);
  const int32_t frequency = frequency_of(heard, number), count = channel.count & 0x1F;
  Polynomials p{(channel.four ^ 1u) & 0x0F, (channel.five ^ 1u) & 0x1F};
  int32_t next = frequency > count ? frequency - count : 0;  // the sample at which it is through
  for (int word = 0; word < kFrameWords; ++word, next -= kSampleBits) {
    uint32_t bits = p.four >> 3 ? ~0u : 0u;
    for (; next < kSampleBits; next += frequency + 1) {
      p = next_of(control, p);
      const uint32_t from_here = ~0u << next;
      bits = p.four >> 3 ? bits | from_here : bits & ~from_here;
    }
    loud[word] = bits;
  }
  channel = {static_cast<uint8_t>(p.four ^ 1), static_cast<uint8_t>(p.five ^ 1),
             static_cast<uint8_t>(frequency - next), 0};
}

// Four samples, from number 4 * `i` on.
CULE_INLINE uint32_t four_samples(uint32_t heard, const SoundBits (&loud)[kSoundChannels], int i) {
  uint32_t samples = kSilence;
  for (int channel = 0; channel < kSoundChannels; ++channel) {
    const uint32_t bits = loud[channel][i / 8] >> (i % 8 * 4) & 0x0F;
    samples += (bits * 0x00204081u & 0x01010101u) * (volume_of(heard, channel) * 4);
  }
  return samples;
}

// Plays a frame for which the program has left these registers, and makes its samples, 128 words.
// As ale-py does, both channels share one output: each adds up to 60 to the 128 of silence.
template <class Lanes>
CULE_INLINE void hear_frame(SoundState& state, uint32_t heard, uint32_t* samples,
                            SoundBits (&loud)[kSoundChannels], const Lanes& lanes) {
  for (int i = lanes.lane(); i < kSoundChannels; i += Lanes::kCount)
    play_channel(state.channels[i], heard, i, loud[i]);
  lanes.sync();
  for (int i = lanes.lane(); i < kFrameSamples / 4; i += Lanes::kCount)
    samples[i] = four_samples(heard, loud, i);
  lanes.sync();
}

}  // namespace cule
