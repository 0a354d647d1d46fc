// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each entry of the tables of a space calls the member that it stands for, with the arguments as they are: two entries that are
// swapped, or two arguments, are seen here.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <adasum/detail/references/space_ref.hpp>
#include <adasum/detail/references/sums_table.hpp>

#include "support/minimal_types.hpp"
#include "support/recorded.hpp"

namespace test_of_detail_references_space_ref {

using namespace adasum;
using namespace adasum::test;

namespace {

template <class T>
std::string type_name() {
  if constexpr (std::is_same_v<T, float>) return "float";
  if constexpr (std::is_same_v<T, double>) return "double";
  if constexpr (std::is_same_v<T, detail::packed_bfloat16>) return "bfloat16";
  if constexpr (std::is_same_v<T, detail::packed_binary16>) return "binary16";
}
template <class T>
std::string to_text(const slice& window, std::span<const T* const> vectors) {
  std::string text =
      type_name<T>() + " [" + std::to_string(window.range.begin) + "," + std::to_string(window.range.end) + ") of";
  for (const T* const one : vectors) text += " " + as_word(one);
  return text;
}

/// Notes what it is asked, and does nothing.
struct recording_space {
  std::string name = "recording";
  int number = 0;
  friend bool operator==(const recording_space&, const recording_space&) = default;

  template <scalar T>
  std::vector<T> allocate(std::size_t count) const {
    record("allocate", number, type_name<T>(), count);
    return std::vector<T>(count);
  }
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    record("measure", number, to_text(window, vectors), gram);
  }
  template <scalar T>
  void measure_in_double(const slice& window, std::span<const T* const> vectors, double* gram) const {
    record("measure_in_double", number, to_text(window, vectors), gram);
  }
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    record("mix", number, to_text(window, vectors), weights, out);
  }
  template <scalar From, scalar To>
  void mix_in_double(const slice& window, std::span<const From* const> vectors, const double* weights, To* out) const {
    record("mix_in_double", number, to_text(window, vectors), weights, type_name<To>(), out);
  }
  template <scalar From, scalar To>
  void copy(const From* from, To* to, std::size_t count) const {
    record("copy", number, type_name<From>(), from, type_name<To>(), to, count);
  }
  void fence() const { record("fence", number); }
  bool can_reach(const void* address) const {
    record("can_reach", number, static_cast<const std::byte*>(address));
    return address != at(8);
  }
  friend recording_space for_recombining(const recording_space& space) { return {"wide", space.number + 100}; }
  friend std::string_view rounding_of(detail::own_type, const recording_space& space) {
    return space.number == 1 ? "like one" : "like another";
  }
};

/// Works in rounds, as the library's own spaces do.
struct space_in_rounds : recording_space {
  using recording_space::measure, recording_space::mix;
  void measure(const slice& window, std::span<const float* const> vectors, double* gram, std::size_t bytes) const {
    record("measure in rounds", to_text(window, vectors), gram, bytes);
  }
  void mix(const slice& window, std::span<const float* const> vectors, const double* weights, float* out,
           std::size_t bytes) const {
    record("mix in rounds", to_text(window, vectors), weights, out, bytes);
  }
};

const segments cut{6, 4};
const slice window{cut, {2, 5}};
const std::array<const void*, 2> two{at(16), at(32)};
double* gram() { return reinterpret_cast<double*>(at(64)); }
const double* weights() { return reinterpret_cast<const double*>(at(96)); }

}  // namespace
}  // namespace test_of_detail_references_space_ref

template <>
inline constexpr std::size_t adasum::detail::own_round_bytes<test_of_detail_references_space_ref::space_in_rounds> = 100;

namespace test_of_detail_references_space_ref {

TEST_CASE("each entry is the member of its name") {
  const recording_space space{.number = 1};
  const auto ref = detail::ref_to_space<float>(space);
  CHECK(ref.name() == "recording");
  CHECK(ref.format() == format_of<float>);
  CHECK(ref.element_size() == 4);
  CHECK_FALSE(ref.is_device());
  CHECK(ref.round_bytes() == 0);
  CHECK(ref.object() == &space);
  CHECK(ref.arithmetic() == "recording like one");
  CHECK(ref.may_be_kept());

  recorded.clear();
  const auto memory = ref.allocate(7);
  CHECK(last_recorded() == "allocate 1 float 7");
  for (std::size_t i = 0; i < 7; ++i) CHECK(reinterpret_cast<float*>(memory.data())[i] == 0);
  ref.measure(window, two, gram(), 40);
  CHECK(last_recorded() == "measure 1 float [2,5) of @16 @32 @64");
  CHECK(ref.measures_in_double());
  ref.measure_in_double(window, two, gram());
  CHECK(last_recorded() == "measure_in_double 1 float [2,5) of @16 @32 @64");
  ref.mix(window, two, weights(), at(128), 40);
  CHECK(last_recorded() == "mix 1 float [2,5) of @16 @32 @96 @128");
  CHECK(ref.mixes_in_double());
  ref.mix_in_double(window, two, weights(), at(128));
  CHECK(last_recorded() == "mix_in_double 1 float [2,5) of @16 @32 @96 float @128");
  detail::mix_accurately(ref, window, two, weights(), at(128));
  CHECK(last_recorded() == "mix_in_double 1 float [2,5) of @16 @32 @96 float @128");
  ref.copy(at(16), at(128), 3);
  CHECK(last_recorded() == "copy 1 float @16 float @128 3");
  ref.fence();
  CHECK(last_recorded() == "fence 1");
  CHECK(ref.can_reach(at(16)));
  CHECK_FALSE(ref.can_reach(at(8)));
  CHECK(last_recorded() == "can_reach 1 @16; can_reach 1 @8");
}

TEST_CASE("what works in rounds is told of the bytes, where they are known") {
  const space_in_rounds space;
  const auto ref = detail::ref_to_space<float>(space);
  CHECK(ref.round_bytes() == 100);
  recorded.clear();
  ref.measure(window, two, gram(), 40);
  CHECK(last_recorded() == "measure in rounds float [2,5) of @16 @32 @64 40");
  ref.measure(window, two, gram());
  CHECK(last_recorded() == "measure 0 float [2,5) of @16 @32 @64");
  ref.mix(window, two, weights(), at(128), 40);
  CHECK(last_recorded() == "mix in rounds float [2,5) of @16 @32 @96 @128 40");
}

TEST_CASE("copies are in double, in the space that is offered for them") {
  const recording_space space{.number = 1};
  const auto copies = detail::ref_to_space<float>(space).copies();
  CHECK(detail::ref_to_space<float>(space).copies_are_double());
  CHECK(copies.space.format() == format_of<double>);
  recorded.clear();
  copies.space.fence();
  CHECK(last_recorded() == "fence 101");
  copies.copy_in(copies.space.object(), at(16), at(128), 3);
  CHECK(last_recorded() == "copy 101 float @16 double @128 3");
  copies.copy_out(copies.space.object(), at(128), at(16), 3);
  CHECK(last_recorded() == "copy 101 double @128 float @16 3");

  // Of double, in the space itself.
  const auto ref = detail::ref_to_space<double>(space);
  CHECK(ref.copies().space.object() == &space);
  CHECK_FALSE(ref.measures_in_double());
  recorded.clear();
  ref.copies().copy_in(&space, at(16), at(128), 3);
  CHECK(last_recorded() == "copy 1 double @16 double @128 3");
}

TEST_CASE("elements are packed to either format, and unpacked from it") {
  const recording_space space{.number = 1};
  const auto& packing = *detail::ref_to_space<float>(space).packing();
  recorded.clear();
  packing.allocate(&space, 9);
  CHECK(last_recorded() == "allocate 1 bfloat16 9");
  packing.pack(&space, wire_format::bfloat16, at(16), at(128), 3);
  CHECK(last_recorded() == "copy 1 float @16 bfloat16 @128 3");
  packing.pack(&space, wire_format::binary16, at(16), at(128), 3);
  CHECK(last_recorded() == "copy 1 float @16 binary16 @128 3");
  packing.unpack(&space, wire_format::bfloat16, at(16), at(128), 3);
  CHECK(last_recorded() == "copy 1 bfloat16 @16 float @128 3");
  packing.unpack(&space, wire_format::binary16, at(16), at(128), 3);
  CHECK(last_recorded() == "copy 1 binary16 @16 float @128 3");
}

TEST_CASE("sums are in double") {
  const recording_space space{.number = 1};
  const auto& sums = *detail::sums_if_any<float, recording_space>();
  recorded.clear();
  sums.allocate(&space, 9);
  CHECK(last_recorded() == "allocate 1 double 9");
  sums.add_up(&space, window, two, weights(), at(128));
  CHECK(last_recorded() == "mix_in_double 1 float [2,5) of @16 @32 @96 double @128");
  sums.measure(&space, window, two, gram());
  CHECK(last_recorded() == "measure_in_double 1 double [2,5) of @16 @32 @64");
  sums.mix(&space, window, two, weights(), at(128));
  CHECK(last_recorded() == "mix_in_double 1 double [2,5) of @16 @32 @96 float @128");
}

TEST_CASE("spaces are equal if they are of one type and compare so; a copy outlives the space") {
  recording_space space{.number = 1};
  const recording_space same{.number = 1}, other{.number = 2};
  const space_in_rounds another_type{{.number = 1}};
  const auto ref = detail::ref_to_space<float>(space);
  CHECK(ref.equals(detail::ref_to_space<float>(same)));
  CHECK_FALSE(ref.equals(detail::ref_to_space<float>(other)));
  CHECK_FALSE(ref.equals(detail::ref_to_space<double>(same)));
  CHECK_FALSE(ref.equals(detail::ref_to_space<float>(another_type)));
  const auto held = ref.copy_of_space();
  space.number = 5;
  recorded.clear();
  ref.to(held).fence();
  CHECK(last_recorded() == "fence 1");
}

TEST_CASE("what a space does not have is not there") {
  const minimal_space<float> space(1);
  const auto ref = detail::ref_to_space<float>(space);
  CHECK_FALSE(ref.measures_in_double());
  CHECK_FALSE(ref.mixes_in_double());
  CHECK_FALSE(ref.copies_are_double());
  CHECK(ref.packing() == nullptr);
  CHECK(detail::sums_if_any<float, minimal_space<float>>() == nullptr);
  CHECK(ref.can_reach(nullptr));
  CHECK(ref.arithmetic() == "minimal space");
  CHECK(ref.copies().space.object() == &space);
}

}  // namespace test_of_detail_references_space_ref
