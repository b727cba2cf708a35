// The handlers of XLA's custom calls by which JAX's programs step and reset envs. They pass the
// buffers' addresses on to the core (csrc/bindings/calls.h), which does everything else, on a GPU,
// too: so no compiler for GPUs is needed.
//
// cule/adapters/jax/handler.py compiles this file with the headers of the jaxlib that is installed.
// https://docs.jax.dev/en/latest/ffi.html
#include <cstdint>
#include <vector>

#include "bindings/calls.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

cule::PlayCall play = nullptr;

ffi::Error call(int32_t device, void* stream, uint64_t port, bool steps, bool seeds, bool masks,
                ffi::RemainingArgs args, ffi::RemainingRets rets) {
  std::vector<cule::CallBuffer> in(args.size()), out(rets.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const auto buffer = args.get<ffi::AnyBuffer>(i);
    if (buffer.has_error()) return buffer.error();
    in[i] = {buffer->untyped_data(), buffer->size_bytes()};
  }
  for (size_t i = 0; i < out.size(); ++i) {
    auto buffer = rets.get<ffi::AnyBuffer>(i);
    if (buffer.has_error()) return buffer.error();
    out[i] = {(*buffer)->untyped_data(), (*buffer)->size_bytes()};
  }
  char problem[cule::kProblemBytes];
  const cule::PortCall passed{port,      steps,      seeds,      masks,     device,
                              stream,    in.data(),  in.size(),  out.data(), out.size()};
  if (play && play(passed, problem)) return ffi::Error::Success();
  return ffi::Error(ffi::ErrorCode::kInvalidArgument, play ? problem : "cule is not connected");
}

ffi::Error call_on_cpu(int64_t port, bool steps, bool seeds, bool masks, ffi::RemainingArgs args,
                       ffi::RemainingRets rets) {
  return call(-1, nullptr, static_cast<uint64_t>(port), steps, seeds, masks, args, rets);
}
ffi::Error call_on_gpu(int32_t device, void* stream, int64_t port, bool steps, bool seeds,
                       bool masks, ffi::RemainingArgs args, ffi::RemainingRets rets) {
  return call(device, stream, static_cast<uint64_t>(port), steps, seeds, masks, args, rets);
}

}  // namespace

extern "C" void cule_connect(cule::PlayCall function) { play = function; }

XLA_FFI_DEFINE_HANDLER_SYMBOL(cule_on_cpu, call_on_cpu,
                              ffi::Ffi::Bind()
                                  .Attr<int64_t>("port")
                                  .Attr<bool>("steps")
                                  .Attr<bool>("seeds")
                                  .Attr<bool>("masks")
                                  .RemainingArgs()
                                  .RemainingRets());
XLA_FFI_DEFINE_HANDLER_SYMBOL(cule_on_gpu, call_on_gpu,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::DeviceOrdinal>()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Attr<int64_t>("port")
                                  .Attr<bool>("steps")
                                  .Attr<bool>("seeds")
                                  .Attr<bool>("masks")
                                  .RemainingArgs()
                                  .RemainingRets());
