// Checks arguments from Python. Each check returns the value as a plain C++ type, or throws an
// error that says what was expected and what came.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

namespace cule {

inline std::string text_of(const pybind11::handle& value) {
  const std::string text = pybind11::repr(value);
  return text.size() <= 100 ? text : text.substr(0, 100) + "...";
}

// An integer from `least` to `most`.
inline int64_t integer(const char* name, const pybind11::handle& value, int64_t least,
                       int64_t most = std::numeric_limits<int32_t>::max()) {
  if (!PyLong_Check(value.ptr())) {
    throw pybind11::type_error(std::string("expected ") + name + " to be an integer, got " +
                               text_of(value));
  }
  int overflow = 0;
  const long long found = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow || found < least || found > most) {
    throw std::invalid_argument(std::string("expected ") + name + " to be from " +
                                std::to_string(least) + " to " + std::to_string(most) + ", got " +
                                text_of(value));
  }
  return found;
}

// An address of user memory with this alignment, or 0.
inline uintptr_t address(const char* name, const pybind11::handle& value, size_t alignment) {
  const auto found = static_cast<uintptr_t>(
      integer(name, value, 0, std::numeric_limits<int64_t>::max()));
  if (found % alignment) {
    throw std::invalid_argument(std::string("expected ") + name +
                                " to be an address that is a multiple of " +
                                std::to_string(alignment) + ", got " + text_of(value));
  }
  return found;
}

// The bytes of a contiguous buffer, such as an array.
class Bytes {
 public:
  Bytes(const char* name, const pybind11::handle& value) : name_(name) {
    if (PyObject_GetBuffer(value.ptr(), &view_, PyBUF_SIMPLE) != 0) {
      PyErr_Clear();
      throw pybind11::type_error(std::string("expected ") + name +
                                 " to be a contiguous array, got " + text_of(value));
    }
  }
  ~Bytes() { PyBuffer_Release(&view_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  const uint8_t* data() const { return static_cast<const uint8_t*>(view_.buf); }
  // How many elements of `bytes` bytes there are.
  size_t count(size_t bytes) const {
    if (view_.len % static_cast<Py_ssize_t>(bytes)) {
      throw std::invalid_argument(std::string("expected ") + name_ + " to be of " +
                                  std::to_string(bytes) + " bytes each, got " +
                                  std::to_string(view_.len) + " bytes");
    }
    return static_cast<size_t>(view_.len) / bytes;
  }
  template <class T>
  T at(size_t i) const {
    T element;
    std::memcpy(&element, data() + i * sizeof element, sizeof element);
    return element;
  }

 private:
  const char* name_;
  Py_buffer view_;
};

}  // namespace cule
