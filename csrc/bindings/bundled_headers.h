// The core's headers as text, for what is compiled at run time. bundle_headers.cmake writes the list.
#pragma once

namespace cule {

struct BundledHeader {
  const char* name;  // as it is included; null ends the list
  const char* text;
};
extern const BundledHeader kBundledHeaders[];

}  // namespace cule
