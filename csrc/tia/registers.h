// The TIA's registers, by the names of the Stella Programmer's Guide. One address means different
// things by direction.
#pragma once

#include "common/platform.h"

namespace cule {

namespace tia_write {
enum Register : uint32_t {
  VSYNC = 0x00,
  VBLANK,
  WSYNC,
  RSYNC,
  NUSIZ0,
  NUSIZ1,
  COLUP0,
  COLUP1,
  COLUPF,
  COLUBK,
  CTRLPF,
  REFP0,
  REFP1,
  PF0,
  PF1,
  PF2,
  RESP0 = 0x10,
  RESP1,
  RESM0,
  RESM1,
  RESBL,
  AUDC0,
  AUDC1,
  AUDF0,
  AUDF1,
  AUDV0,
  AUDV1,
  GRP0,
  GRP1,
  ENAM0,
  ENAM1,
  ENABL,
  HMP0 = 0x20,
  HMP1,
  HMM0,
  HMM1,
  HMBL,
  VDELP0,
  VDELP1,
  VDELBL,
  RESMP0,
  RESMP1,
  HMOVE,
  HMCLR,
  CXCLR = 0x2C,
};
}  // namespace tia_write

namespace tia_read {
enum Register : uint32_t {
  CXM0P = 0x00,
  CXM1P,
  CXP0FB,
  CXP1FB,
  CXM0FB,
  CXM1FB,
  CXBLPF,
  CXPPMM,
  INPT0 = 0x08,
  INPT1,
  INPT2,
  INPT3,
  INPT4,
  INPT5,
};
}  // namespace tia_read

constexpr int kClocksPerCycle = 3;
constexpr int kClocksPerLine = 228;
constexpr int kCyclesPerLine = 76;
constexpr int kHblankClocks = 68;
constexpr int kLinePixels = 160;

}  // namespace cule
