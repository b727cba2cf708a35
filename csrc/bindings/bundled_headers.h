// The core's headers as text: games are compiled with them at run time. bundle_headers.cmake writes
// the list.
#pragma once

namespace cule {

struct BundledHeader {
  const char* name;  // as in an #include; null ends the list
  const char* text;
};
extern const BundledHeader kBundledHeaders[];

}  // namespace cule
