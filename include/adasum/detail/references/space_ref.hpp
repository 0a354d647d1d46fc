// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../../core/concepts.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/options.hpp"
#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../../core/space_members.hpp"
#include "erased.hpp"
#include "packed_element.hpp"
#include "refused_members.hpp"

/// An execution space and an element type, as the engine sees them: a table of functions. The engine is no template.
namespace adasum::detail {

/// Vectors of one element type: in each, the address of the element at a window's origin.
using vector_list = std::span<const void* const>;

/// Elements in memory of a space, of any type.
class space_memory {
 public:
  space_memory() : held_(no_object()) {}
  /// @param memory  what a space's allocate() returns
  template <class Memory>
  static space_memory of(Memory memory) {
    space_memory found;
    found.held_ = own(std::move(memory));
    found.data_ = reinterpret_cast<std::byte*>(static_cast<Memory*>(found.held_.get())->data());
    return found;
  }
  std::byte* data() const { return data_; }

 private:
  owned_object held_;
  std::byte* data_ = nullptr;
};

struct space_for_copies;

/// What options::wire needs of a space. 16-bit elements are of either format; which one, is said at run time.
struct packing_table {
  space_memory (*allocate)(const void* space, std::size_t count);
  void (*pack)(const void* space, wire_format format, const void* from, void* to, std::size_t count);
  void (*unpack)(const void* space, wire_format format, const void* from, void* to, std::size_t count);
};

/// The members of a space (core/concepts.hpp) for one element type. What is optional there may be null here.
struct space_table {
  std::string_view (*name)(const void* space);
  number_format format;
  std::size_t element_size;
  bool is_device;
  std::size_t round_bytes;  ///< 0: a round has no limit
  space_memory (*allocate)(const void* space, std::size_t count);
  void (*measure)(const void* space, const slice&, vector_list, double* gram, std::size_t bytes);
  void (*measure_in_double)(const void* space, const slice&, vector_list, double* gram);
  void (*mix)(const void* space, const slice&, vector_list, const double* weights, void* out, std::size_t bytes);
  void (*mix_in_double)(const void* space, const slice&, vector_list, const double* weights, void* out);
  void (*copy)(const void* space, const void* from, void* to, std::size_t count);
  void (*fence)(const void* space);
  bool (*can_reach)(const void* space, const void* address);
  std::string_view (*rounding)(const void* space);
  bool (*equal)(const void* a, const void* b);
  bool may_be_kept;  ///< with its memory, by single calls
  space_for_copies (*copies)(const void* space);
  owned_object (*copy_of_space)(const void* space);
  bool copies_are_double;  ///< whether elements of these copies are double
  const packing_table* packing;
};

/// A space of the caller's, for vectors of one element type. Whoever holds it sees to it that the space lives.
class space_ref {
 public:
  space_ref(const space_table& table, const void* space) : table_(&table), space_(space) {}

  std::string_view name() const { return table_->name(space_); }
  number_format format() const { return table_->format; }
  std::size_t element_size() const { return table_->element_size; }
  bool is_device() const { return table_->is_device; }
  std::size_t round_bytes() const { return table_->round_bytes; }
  const packing_table* packing() const { return table_->packing; }
  bool copies_are_double() const { return table_->copies_are_double; }
  const void* object() const { return space_; }
  /// A copy of the space, for whoever outlives it, and the reference to that.
  owned_object copy_of_space() const { return table_->copy_of_space(space_); }
  space_ref to(const owned_object& copied) const { return {*table_, copied.get()}; }
  const space_table& table() const { return *table_; }

  // Addresses of elements.
  std::byte* at(std::byte* first, std::size_t element) const { return first + element * table_->element_size; }
  const std::byte* at(const void* first, std::size_t element) const {
    return static_cast<const std::byte*>(first) + element * table_->element_size;
  }

  space_memory allocate(std::size_t count) const { return table_->allocate(space_, count); }
  /// @param bytes  of all vectors, where the window is one round of several; 0 if it is the whole
  void measure(const slice& window, vector_list vectors, double* gram, std::size_t bytes = 0) const {
    table_->measure(space_, window, vectors, gram, bytes);
  }
  bool measures_in_double() const { return table_->measure_in_double != nullptr; }
  void measure_in_double(const slice& window, vector_list vectors, double* gram) const {
    table_->measure_in_double(space_, window, vectors, gram);
  }
  /// @param bytes  likewise; 0 if nobody knows
  void mix(const slice& window, vector_list vectors, const double* weights, void* out, std::size_t bytes = 0) const {
    table_->mix(space_, window, vectors, weights, out, bytes);
  }
  bool mixes_in_double() const { return table_->mix_in_double != nullptr; }
  void mix_in_double(const slice& window, vector_list vectors, const double* weights, void* out) const {
    table_->mix_in_double(space_, window, vectors, weights, out);
  }
  void copy(const void* from, void* to, std::size_t count) const { table_->copy(space_, from, to, count); }
  void fence() const { table_->fence(space_); }
  bool can_reach(const void* address) const {
    return table_->can_reach == nullptr || table_->can_reach(space_, address);
  }
  /// How it rounds: its name, and what else tells.
  std::string arithmetic() const {
    std::string text(name());
    if (table_->rounding != nullptr) text += " " + std::string(table_->rounding(space_));
    return text;
  }
  /// Whether a communicator may keep a copy of it, and its memory.
  bool may_be_kept() const { return table_->may_be_kept; }
  /// Whether both do the same.
  bool equals(const space_ref& other) const {
    return table_ == other.table_ && table_->equal(space_, other.space_);
  }
  space_for_copies copies() const;

 private:
  const space_table* table_;
  const void* space_;
};

/// Where vectors are combined one by one that inner products do not decide: in double where the space offers that, and else
/// the space itself.
struct space_for_copies {
  owned_object held;  ///< the space, if it was made for this
  space_ref space;    ///< for elements of the copies
  void (*copy_in)(const void* space, const void* from, void* to, std::size_t count);
  void (*copy_out)(const void* space, const void* from, void* to, std::size_t count);  ///< rounds
};

inline space_for_copies space_ref::copies() const { return table_->copies(space_); }

/// Mixes vectors whose sum may be much shorter than they are.
inline void mix_accurately(const space_ref& space, const slice& window, vector_list vectors, const double* weights,
                           void* out) {
  if (space.mixes_in_double())
    space.mix_in_double(window, vectors, weights, out);
  else
    space.mix(window, vectors, weights, out);
}

// ── from the concept to the table ──

/// Addresses of elements of T. (All pointers to objects have the same representation.)
template <class T>
std::span<const T* const> typed(vector_list vectors) {
  return {reinterpret_cast<const T* const*>(vectors.data()), vectors.size()};
}

template <class Space>
concept says_how_it_rounds = requires(const Space& space) { rounding_of(own_type{}, space); };

template <scalar T, class Space>
struct functions_of_space {
  /// A template, so that nvcc, too, sees that what a generic lambda gives it depends on the lambda's argument.
  template <class Object>
  static const Space& of(const Object* space) {
    return *static_cast<const Space*>(space);
  }

  static space_memory allocate(const void* space, std::size_t count) {
    return space_memory::of(of(space).template allocate<T>(count));
  }
  static void measure(const void* space, const slice& window, vector_list vectors, double* gram, std::size_t bytes) {
    measure_round(of(space), window, typed<T>(vectors), gram, bytes);
  }
  static void mix(const void* space, const slice& window, vector_list vectors, const double* weights, void* out,
                  std::size_t bytes) {
    mix_round(of(space), window, typed<T>(vectors), weights, static_cast<T*>(out), bytes);
  }
  static void copy(const void* space, const void* from, void* to, std::size_t count) {
    of(space).copy(static_cast<const T*>(from), static_cast<T*>(to), count);
  }
  static void fence(const void* space) { of(space).fence(); }

  static constexpr bool may_be_kept() {
    return !device_space<Space> && !requires(const Space& space) { must_not_be_kept(own_type{}, space); };
  }
};

template <scalar T, class Space>
space_ref ref_to_space(const Space& space);

/// See space_table::copies.
template <scalar T, class Space>
space_for_copies copies_of(const void* space) {
  const auto& mine = *static_cast<const Space*>(space);
  if constexpr (recombines_in_double<Space, T> && !std::same_as<T, double>) {
    using wide = std::remove_cvref_t<decltype(for_recombining(mine))>;
    auto held = own(wide(for_recombining(mine)));
    const auto& made = *static_cast<const wide*>(held.get());
    return {std::move(held), ref_to_space<double>(made),
            [](const void* to_space, const void* from, void* to, std::size_t count) {
              static_cast<const wide*>(to_space)->copy(static_cast<const T*>(from), static_cast<double*>(to), count);
            },
            [](const void* from_space, const void* from, void* to, std::size_t count) {
              static_cast<const wide*>(from_space)->copy(static_cast<const double*>(from), static_cast<T*>(to), count);
            }};
  } else {
    return {no_object(), ref_to_space<T>(mine), &functions_of_space<T, Space>::copy,
            &functions_of_space<T, Space>::copy};
  }
}

/// See packing_table.
template <scalar T, class Space>
requires packs<Space, T>
inline constexpr packing_table packing_of{
    [](const void* space, std::size_t count) {
      return space_memory::of(static_cast<const Space*>(space)->template allocate<packed_bfloat16>(count));
    },
    [](const void* space, wire_format format, const void* from, void* to, std::size_t count) {
      const auto& mine = *static_cast<const Space*>(space);
      const auto* const elements = static_cast<const T*>(from);
      if (format == wire_format::bfloat16)
        mine.copy(elements, static_cast<packed_bfloat16*>(to), count);
      else
        mine.copy(elements, static_cast<packed_binary16*>(to), count);
    },
    [](const void* space, wire_format format, const void* from, void* to, std::size_t count) {
      const auto& mine = *static_cast<const Space*>(space);
      auto* const elements = static_cast<T*>(to);
      if (format == wire_format::bfloat16)
        mine.copy(static_cast<const packed_bfloat16*>(from), elements, count);
      else
        mine.copy(static_cast<const packed_binary16*>(from), elements, count);
    }};

template <scalar T, class Space>
constexpr const packing_table* packing_if_any() {
  if constexpr (packs<Space, T>)
    return &packing_of<T, Space>;
  else
    return nullptr;
}

/// Neither const, so that no linker takes the tables of two types for one, since plans are told apart by them; nor inline, so
/// that they can be compiled elsewhere.
template <scalar T, class Space, class Functions = functions_of_space<T, Space>>
space_table table_of_space{
    .name = [](const void* space) -> std::string_view { return Functions::of(space).name; },
    .format = format_of<T>,
    .element_size = sizeof(T),
    .is_device = device_space<Space>,
    .round_bytes = own_round_bytes<Space>,
    .allocate = &Functions::allocate,
    .measure = &Functions::measure,
    .measure_in_double =
        entry_if<!std::same_as<T, double> && measures_in_double<Space, T>, decltype(space_table::measure_in_double)>(
            [](const auto* space, const slice& window, vector_list vectors, double* gram) {
              Functions::of(space).measure_in_double(window, typed<T>(vectors), gram);
            }),
    .mix = &Functions::mix,
    .mix_in_double = entry_if<mixes_in_double<Space, T>, decltype(space_table::mix_in_double)>(
        [](const auto* space, const slice& window, vector_list vectors, const double* weights, void* out) {
          Functions::of(space).mix_in_double(window, typed<T>(vectors), weights, static_cast<T*>(out));
        }),
    .copy = &Functions::copy,
    .fence = &Functions::fence,
    .can_reach = entry_if<says_what_it_reaches<Space>, decltype(space_table::can_reach)>(
        [](const auto* space, const void* address) -> bool { return Functions::of(space).can_reach(address); }),
    .rounding = entry_if<says_how_it_rounds<Space>, decltype(space_table::rounding)>(
        [](const auto* space) -> std::string_view { return rounding_of(own_type{}, Functions::of(space)); }),
    .equal = [](const void* a, const void* b) { return do_the_same(Functions::of(a), Functions::of(b)); },
    .may_be_kept = Functions::may_be_kept(),
    .copies = &copies_of<T, Space>,
    .copy_of_space = [](const void* space) { return own(Space(Functions::of(space))); },
    .copies_are_double = recombines_in_double<Space, T>,
    .packing = packing_if_any<T, Space>()};

template <scalar T, class Space>
space_ref ref_to_space(const Space& space) {
  refuse_members_of_space<T, Space>();
  return {table_of_space<T, Space>, &space};
}

}  // namespace adasum::detail
