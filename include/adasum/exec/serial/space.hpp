// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "../../core/segments.hpp"
#include "convert.hpp"
#include "instruction_set.hpp"
#include "measure.hpp"
#include "mix.hpp"

namespace adasum {

/// The execution space of the calling thread: every call computes before it returns. Uses the best vector instructions
/// that the processor has, chosen at run time. Has no state, so one object may serve any number of threads.
/// Holds the contract of the concept execution_space for every scalar.
class serial_space {
 public:
  static constexpr std::string_view name = "serial";
  /// What has been measured is still in the second cache when it is mixed.
  static constexpr std::size_t round_bytes = std::size_t{256} << 10;

  serial_space() = default;
  /// Uses the given instructions. @pre the processor has them
  explicit serial_space(serial::instruction_set instructions) : instructions_(instructions) {}

  serial::instruction_set instructions() const { return instructions_; }
  /// Ranks whose spaces differ in this do not round alike, so they could not end bitwise identical.
  std::string_view arithmetic() const { return to_string(instructions_); }

  /// Uninitialised memory on whole cache lines, owned by what is returned.
  template <scalar T>
  auto allocate(std::size_t count) const {
    struct release {
      void operator()(T* elements) const { ::operator delete(static_cast<void*>(elements), cache_line); }
    };
    struct buffer {
      std::unique_ptr<T[], release> elements;
      T* data() const { return elements.get(); }
    };
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    return buffer{std::unique_ptr<T[], release>(static_cast<T*>(::operator new(count * sizeof(T), cache_line)))};
  }

  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    measure(window, vectors, gram, comes_from_memory<T>(window, vectors.size()));
  }
  /// For a part of a larger window. @param from_memory  see comes_from_memory, of the whole
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram, bool from_memory) const {
    const std::size_t n = vectors.size(), packed = packed_size(n);
    std::fill_n(gram, window.segments.size() * packed, 0.0);
    measure_room<T> room(n);
    for_each_piece(window, vectors, [&](std::size_t k, index_range piece, const T* const* at) {
      double* const sums = gram + k * packed;
      if (n == 1)
        serial::run<serial::measure_few<1, T>>(instructions_, at, piece.size(), from_memory, sums);
      else if (n == 2)
        serial::run<serial::measure_few<2, T>>(instructions_, at, piece.size(), from_memory, sums);
      else
        serial::run<serial::measure_many<T>>(instructions_, at, n, piece.size(), from_memory, room.elements.data(),
                                             room.at.data(), sums);
    });
  }

  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    mix(window, vectors, weights, out, comes_from_memory<T>(window, vectors.size()));
  }
  /// For a part of a larger window, as above.
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out,
           bool from_memory) const {
    const std::size_t n = vectors.size();
    for_each_piece(window, vectors, [&](std::size_t k, index_range piece, const T* const* at) {
      const std::span w(weights + k * n, n);
      if (std::ranges::find(w, 0.0) == w.end())
        mix_piece<T>({at, n}, w, piece.size(), from_memory, out + piece.begin);
      else
        mix_without_zeros<T>({at, n}, w, piece.size(), from_memory, out + piece.begin);
    });
  }

  /// Whether n vectors are so long in the window that they most likely come from memory, and are asked for ahead.
  template <scalar T>
  static constexpr bool comes_from_memory(const slice& window, std::size_t n) {
    return serial::come_from_memory(n * window.range.size() * sizeof(T));
  }

  template <scalar T>
  void copy(const T* from, T* to, std::size_t count) const {
    if (count != 0) std::memcpy(static_cast<void*>(to), from, count * sizeof(T));
  }

  /// Between float and a 16-bit type, rounded to nearest even.
  template <scalar From, scalar To>
    requires(!std::same_as<From, To> && std::same_as<serial::compute_type<From>, float> &&
             std::same_as<serial::compute_type<To>, float>)
  void copy(const From* from, To* to, std::size_t count) const {
    serial::run<serial::convert<From, To>>(instructions_, from, to, count);
  }

  void fence() const {}

 private:
  /// Uninitialised, and on the stack where that is not more than Few.
  template <class Element, std::size_t Few>
  class room_for {
   public:
    explicit room_for(std::size_t count)
        : more_(count > Few ? std::make_unique_for_overwrite<Element[]>(count) : nullptr) {}
    Element* data() { return more_ ? more_.get() : few_; }

   private:
    alignas(64) Element few_[Few];
    std::unique_ptr<Element[]> more_;
  };
  static constexpr std::size_t few_vectors = 64;

  /// What serial::measure_many needs for n vectors.
  template <scalar T>
  struct measure_room {
    using kernel = serial::measure_many<T>;
    using element = typename kernel::element;

    explicit measure_room(std::size_t n) : elements(n <= 2 ? 0 : n * kernel::room_length(n)), at(n) {}

    room_for<element, 32768 / sizeof(element)> elements;
    room_for<const element*, few_vectors> at;
  };

  template <scalar T>
  void mix_piece(std::span<const T* const> at, std::span<const double> w, std::size_t length, bool from_memory,
                 T* out) const {
    if (at.size() == 1)
      serial::run<serial::mix_few<1, T>>(instructions_, at.data(), length, from_memory, w.data(), out);
    else if (at.size() == 2)
      serial::run<serial::mix_few<2, T>>(instructions_, at.data(), length, from_memory, w.data(), out);
    else
      serial::run<serial::mix_many<T>>(instructions_, at.data(), at.size(), length, from_memory, w.data(), out);
  }

  /// Vectors of weight 0 are left out, so that NaN in them does not matter.
  template <scalar T>
  void mix_without_zeros(std::span<const T* const> at, std::span<const double> w, std::size_t length, bool from_memory,
                         T* out) const {
    std::vector<const T*> some;
    std::vector<double> nonzero;
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (w[i] == 0) continue;
      some.push_back(at[i]);
      nonzero.push_back(w[i]);
    }
    if (some.empty())
      std::memset(static_cast<void*>(out), 0, length * sizeof(T));  // all bits zero is 0 in every format
    else
      mix_piece<T>(some, nonzero, length, from_memory, out);
  }

  /// visit(segment, its elements in the window, pointers to the first of them) for each segment that has any.
  template <scalar T, class Visitor>
  static void for_each_piece(const slice& window, std::span<const T* const> vectors, Visitor&& visit) {
    room_for<const T*, few_vectors> pointers(vectors.size());
    const T** const at = pointers.data();
    const auto [first, last] = window.touched();
    for (std::size_t k = first; k < last; ++k) {
      const auto piece = window.local(k);
      if (piece.empty()) continue;
      for (std::size_t i = 0; i < vectors.size(); ++i) at[i] = vectors[i] + piece.begin;
      visit(k, piece, at);
    }
  }

  static constexpr std::align_val_t cache_line{64};
  serial::instruction_set instructions_ = serial::best_instruction_set();
};

}  // namespace adasum
