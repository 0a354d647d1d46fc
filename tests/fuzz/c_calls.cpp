// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls of C on one process, with arguments of any kind: each returns a known error code; a call that fails changes nothing
// and has a message; a result is what its report says; and no call touches memory that it was not given.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <adasum/adasum.h>

#include "input.hpp"

namespace {

using namespace adasum::fuzz;

constexpr std::size_t longest = 24, most_gradients = 6;

/// Which the fuzzer changes byte by byte.
std::string some_text(input& in) {
  constexpr const char* texts[] = {"adasum",
                                   "mean",
                                   "multi_krum:byzantine=1,selected=2",
                                   "centred_clipping:radius=2",
                                   "nearest_neighbour_mixing:byzantine=1,rule=pcgrad:seed=3",
                                   "nonfinite=exclude",
                                   "measure=when_needed,nonfinite=raise",
                                   "timeout=1e3,wire=bfloat16,keep_plan=no"};
  std::string text = in.flag() ? in.text() : texts[in.up_to(std::size(texts) - 1)];
  if (const auto place = in.up_to(63); place < text.size() && in.flag())
    text[place] = static_cast<char>(in.number<std::uint8_t>());
  return text;
}
std::optional<std::string> text_or_null(input& in) {
  if (in.up_to(3) == 0) return std::nullopt;
  return some_text(in);
}
const char* pointer(const std::optional<std::string>& text) { return text ? text->c_str() : nullptr; }

/// Lengths of segments that add up to `count`, or of any kind.
std::vector<std::size_t> some_lengths(input& in, std::size_t count) {
  std::vector<std::size_t> lengths(in.up_to(4));
  for (auto& length : lengths) {
    length = in.up_to(15) == 0 ? in.number<std::size_t>() : in.up_to(count);
    if (length <= count) count -= length;
  }
  if (!lengths.empty() && in.up_to(7) != 0) lengths.back() += count;
  return lengths;
}

/// An array of doubles, which has room for as many elements of every type, between two words that stay.
class array {
 public:
  explicit array(input& in) : array() {
    const bool odd_numbers = in.flag();
    for (std::size_t x = 0; x < longest; ++x)
      elements()[x] = odd_numbers ? in.number<double>() : static_cast<double>(in.up_to(9)) - 4;
  }
  double* elements() { return words_.data() + 1; }
  bool is_intact() const { return words_.front() == guard && words_.back() == guard; }
  bool operator==(const array& other) const {
    return std::memcmp(words_.data(), other.words_.data(), sizeof words_) == 0;
  }

 private:
  static constexpr double guard = 12345;
  array() {
    words_.fill(0);
    words_.front() = words_.back() = guard;
  }
  std::array<double, longest + 2> words_;
};

void require_known(int error) {
  require(error >= ADASUM_SUCCESS && error <= ADASUM_OTHER_ERROR, "an error code is a known one");
  require(error == ADASUM_SUCCESS || *adasum_last_error() != '\0', "an error has a message");
  require(std::strcmp(adasum_error_name(error), "unknown error") != 0, "an error has a name");
}

/// A good report, of `contributions` gradients.
void require_consistent(adasum_report report, std::size_t contributions, std::size_t segments) {
  require(adasum_report_contributions(report) == contributions, "a report has as many contributions as gradients");
  require(adasum_report_segments(report) == segments, "a report has as many segments as were given");
  require(*adasum_report_rule(report) != '\0', "a report has a rule");
  int ranks[most_gradients + 1];
  std::fill(std::begin(ranks), std::end(ranks), -7);
  const auto excluded = adasum_report_excluded(report, ranks, most_gradients);
  require(excluded <= contributions, "no more gradients are left out than there are");
  for (std::size_t i = 0; i < most_gradients; ++i)
    require(i < excluded ? ranks[i] >= 0 && ranks[i] < static_cast<int>(contributions) : ranks[i] == -7,
            "the gradients that were left out are listed");
  require(ranks[most_gradients] == -7, "nothing is written beyond the room");
}

/// Of a report of any kind, with indices of any kind.
void read(input& in, adasum_report report) {
  const auto index = [&] { return in.up_to(7) == 0 ? in.number<std::size_t>() : in.up_to(7); };
  (void)adasum_report_norm(report, index(), index());
  (void)adasum_report_weight(report, index(), index());
  (void)adasum_report_orthogonality(report, in.flag() ? ADASUM_ALL_SEGMENTS : index());
  (void)adasum_report_result_norm(report, index());
  (void)adasum_report_finite(report);
  (void)adasum_report_schedule(report);
  const auto step = in.number<std::int64_t>();
  const auto length = adasum_report_json(report, step, nullptr, 0);
  const auto room = in.number<std::uint16_t>() % (length + 3);
  std::vector<char> text(room + 1, '~');
  require(adasum_report_json(report, step, text.data(), room) == length,
          "the length of JSON does not depend on the room");
  require(text[room] == '~', "JSON is not written beyond its room");
  if (room > 0) require(std::strlen(text.data()) == std::min(length, room - 1), "JSON ends with a zero");
}

/// result = Σ cᵢ gᵢ, up to rounding, where all numbers are small integers.
void require_sum(adasum_report report, std::vector<array>& gradients, const double* result,
                 const std::vector<std::size_t>& lengths) {
  for (std::size_t k = 0, x = 0; k < lengths.size(); ++k)
    for (const auto end = x + lengths[k]; x < end; ++x) {
      double sum = 0, mass = 0;
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        const double weight = adasum_report_weight(report, i, k);
        sum += weight * gradients[i].elements()[x];
        mass += std::abs(weight) * std::abs(gradients[i].elements()[x]);
      }
      require(std::abs(sum - result[x]) <= 1e-9 * (1 + mass), "the result is the sum that the report says");
    }
}

void combine(input& in, adasum_report& report) {
  const auto count = in.up_to(longest);
  const int type = in.up_to(7) == 0 ? in.number<int>() : 1 + static_cast<int>(in.up_to(3));
  const auto lengths = some_lengths(in, count);
  const auto rule = text_or_null(in), options = text_or_null(in);
  std::vector<array> gradients;
  for (auto n = in.up_to(most_gradients); n > 0; --n) gradients.emplace_back(in);
  array out(in);
  const auto before = gradients;
  const auto out_before = out;
  std::vector<const void*> pointers;
  for (auto& gradient : gradients) pointers.push_back(gradient.elements());
  double* result = out.elements();
  if (!gradients.empty() && in.up_to(3) == 0) result = gradients[in.up_to(gradients.size() - 1)].elements();
  if (!pointers.empty() && in.up_to(15) == 0) pointers[in.up_to(pointers.size() - 1)] = nullptr;
  if (in.up_to(15) == 0) result = nullptr;
  if (result && in.up_to(15) == 0) result = reinterpret_cast<double*>(reinterpret_cast<char*>(result) + 1);
  const bool with_report = in.flag(), no_segments = lengths.empty();

  const int error =
      adasum_combine(pointers.data(), pointers.size(), result, count, type, no_segments ? nullptr : lengths.data(),
                     lengths.size(), pointer(rule), pointer(options), with_report ? &report : nullptr);
  require_known(error);
  require(out.is_intact(), "nothing is written beyond the result");
  for (std::size_t i = 0; i < gradients.size(); ++i)
    require((gradients[i].elements() == result && error == ADASUM_SUCCESS) || gradients[i] == before[i],
            "gradients do not change");
  if (error != ADASUM_SUCCESS) require(out == out_before, "a call that fails changes nothing");
  if (error != ADASUM_SUCCESS || !with_report) return;
  require_consistent(report, gradients.size(), no_segments ? 1 : lengths.size());
  const auto is_small = [&](array one) {
    return std::all_of(one.elements(), one.elements() + count,
                       [](double x) { return x >= -4 && x <= 5 && x == std::round(x); });
  };
  if (type != ADASUM_DOUBLE || result != out.elements() || !std::all_of(gradients.begin(), gradients.end(), is_small))
    return;
  require_sum(report, gradients, result, no_segments ? std::vector{count} : lengths);
}

void pair(input& in) {
  const auto count = in.up_to(longest);
  const int type = in.up_to(7) == 0 ? in.number<int>() : 1 + static_cast<int>(in.up_to(3));
  const auto lengths = some_lengths(in, count);
  array a(in), b(in), out(in);
  const auto a_before = a, b_before = b, out_before = out;
  double* const places[] = {out.elements(), a.elements(), b.elements(), nullptr};
  double* const result = places[in.up_to(3)];
  const int error = adasum_pair(a.elements(), in.up_to(15) == 0 ? nullptr : b.elements(), result, count, type,
                                lengths.empty() ? nullptr : lengths.data(), lengths.size());
  require_known(error);
  require(a.is_intact() && b.is_intact() && out.is_intact(), "nothing is written beyond the result");
  require((result == a.elements() && error == ADASUM_SUCCESS) || a == a_before, "the first gradient does not change");
  require((result == b.elements() && error == ADASUM_SUCCESS) || b == b_before, "the second gradient does not change");
  require((result == out.elements() && error == ADASUM_SUCCESS) || out == out_before,
          "a call that fails changes nothing");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  adasum_report report = ADASUM_NULL, freed = ADASUM_NULL;
  while (!in.rest().empty()) switch (in.up_to(4)) {
      case 0:
      case 1: combine(in, report); break;
      case 2: pair(in); break;
      case 3: read(in, in.flag() ? report : in.flag() ? freed : adasum_report{in.number<std::uint64_t>()}); break;
      default:
        freed = report;
        require_known(adasum_report_free(&report));
        require(report.id == 0, "a report that was freed is null");
        require(adasum_report_contributions(freed) == 0, "a report that was freed has no contributions");
    }
  if (report.id != 0) require_known(adasum_report_free(&report));
  return 0;
}
