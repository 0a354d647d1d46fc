// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include <adasum/core/concepts.hpp>
#include <adasum/detail/references/packed_element.hpp>
#include <adasum/exec/serial.hpp>

namespace adasum::test {

/// What a kernel was given that is not of its element type. (No sanitizer sees a kernel of floats on memory of doubles.)
struct wrong_element_type : std::logic_error {
  using std::logic_error::logic_error;
};

/// Which memory holds elements of which type: of all typed_memory_spaces, as ranks read each other's.
class element_types {
 public:
  static element_types& of_program() {
    static element_types all;
    return all;
  }
  void add(const void* begin, std::size_t bytes, std::type_index type) {
    const std::scoped_lock lock(mutex_);
    blocks_.insert_or_assign(address(begin), block{bytes, type});
  }
  void remove(const void* begin) {
    const std::scoped_lock lock(mutex_);
    blocks_.erase(address(begin));
  }
  /// @throws wrong_element_type  these bytes are in memory of another type, reach over its end, or, if none_else, are in none
  void require(const void* begin, std::size_t bytes, std::type_index type, bool none_else, const char* use) const {
    if (bytes == 0) return;
    const std::scoped_lock lock(mutex_);
    const auto after = blocks_.upper_bound(address(begin));
    const auto found = after == blocks_.begin() ? blocks_.end() : std::prev(after);
    const bool is_inside = found != blocks_.end() && address(begin) < found->first + found->second.bytes;
    if (!is_inside && !none_else) return;
    if (!is_inside) throw wrong_element_type(std::string(use) + ": of memory that the space has not given");
    if (found->second.type != type) throw wrong_element_type(std::string(use) + ": of elements of another type");
    if (address(begin) + bytes > found->first + found->second.bytes)
      throw wrong_element_type(std::string(use) + ": over the end of memory");
  }

 private:
  struct block {
    std::size_t bytes;
    std::type_index type;
  };
  static std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, block> blocks_;
};

/// Which elements may lie in the same memory: all of 16 bits on their way, whose format is said at run time.
template <class T>
std::type_index kind_of_elements() {
  if constexpr (std::is_same_v<T, detail::packed_binary16>)
    return typeid(detail::packed_bfloat16);
  else
    return typeid(T);
}

/// Elements whose type is known as long as they live.
template <class T>
class typed_memory {
 public:
  explicit typed_memory(std::size_t count) : elements_(count) {
    if (count > 0) element_types::of_program().add(elements_.data(), count * sizeof(T), kind_of_elements<T>());
  }
  explicit typed_memory(const std::vector<T>& values) : typed_memory(values.size()) { elements_ = values; }
  typed_memory(typed_memory&&) noexcept = default;
  typed_memory& operator=(typed_memory&& other) noexcept {
    std::swap(elements_, other.elements_);
    return *this;
  }
  ~typed_memory() {
    if (!elements_.empty()) element_types::of_program().remove(elements_.data());
  }
  T* data() { return elements_.data(); }
  const T* data() const { return elements_.data(); }
  std::size_t size() const { return elements_.size(); }
  T* begin() { return data(); }
  T* end() { return data() + size(); }

 private:
  std::vector<T> elements_;
};

/// serial_space, which refuses elements that it has given as ones of another type.
struct typed_memory_space {
  static constexpr std::string_view name = "typed memory";
  bool none_else = false;  ///< whether it refuses memory, too, that it has not given
  serial_space serial{};
  friend bool operator==(const typed_memory_space&, const typed_memory_space&) = default;

  template <scalar T>
  auto allocate(std::size_t count) const {
    return typed_memory<T>(count);
  }
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    require(window, vectors, "measure");
    serial.measure(window, vectors, gram);
  }
  template <scalar T>
  void measure_in_double(const slice& window, std::span<const T* const> vectors, double* gram) const {
    require(window, vectors, "measure_in_double");
    serial.measure_in_double(window, vectors, gram);
  }
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    require(window, vectors, "mix");
    require(window, out, "mix to");
    serial.mix(window, vectors, weights, out);
  }
  template <scalar From, scalar To>
  void mix_in_double(const slice& window, std::span<const From* const> vectors, const double* weights, To* out) const {
    require(window, vectors, "mix_in_double");
    require(window, out, "mix_in_double to");
    serial.mix_in_double(window, vectors, weights, out);
  }
  template <scalar From, scalar To>
  void copy(const From* from, To* to, std::size_t count) const {
    require(from, count, "copy");
    require(to, count, "copy to");
    if constexpr (requires { serial.copy(from, to, count); })
      serial.copy(from, to, count);
    else
      std::transform(from, from + count, to, [](const From& x) { return from_double<To>(to_double(x)); });
  }
  void fence() const {}
  friend typed_memory_space for_recombining(const typed_memory_space& space) { return space; }

 private:
  template <class T>
  void require(const T* first, std::size_t count, const char* use) const {
    element_types::of_program().require(first, count * sizeof(T), kind_of_elements<T>(), none_else, use);
  }
  template <class T>
  void require(const slice& window, const T* one, const char* use) const {
    if (!window.range.empty()) require(one + (window.range.begin - window.origin), window.range.size(), use);
  }
  template <class T>
  void require(const slice& window, std::span<const T* const> vectors, const char* use) const {
    for (const T* const one : vectors) require(window, one, use);
  }
};

}  // namespace adasum::test
