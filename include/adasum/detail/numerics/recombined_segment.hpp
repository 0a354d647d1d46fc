// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "../../core/gram.hpp"
#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../../core/weigh.hpp"
#include "../references/space_ref.hpp"
#include "segment_copies.hpp"

namespace adasum::detail {

/// Which vectors are combined next, of those that there are: `count` of them, `step` apart.
struct input_list {
  std::size_t first = 0, step = 1, count = 0;
  constexpr std::size_t at(std::size_t i) const { return first + i * step; }
};

/// Powers of two by which the parts of some vectors are multiplied, so that their squares and the result's stay in range.
/// Pure: is told the Gram matrix of each part, and says what to multiply by.
///
/// A vector has one part, or one for each segment where all segments have the same weights. Each part of each vector has a
/// power of its own, 2^exponent, by which its norm comes near 1: so no part loses digits, however long another one is.
///
/// A rule is told of whole vectors, at one common scale: the middle between the largest norm and the smallest comes near 1.
/// Then squares of norms at ratios of up to 2^1000 are in range, and a rule that chooses a small vector sees it as small as
/// it is. Vectors that are shorter still count as zero. Where of so small a vector only the direction counts, as under
/// pairwise rules, the largest norm comes near 1, and no other is left below 2^-lift: such a vector is enlarged, which
/// changes the result by less than its rounding where lift is 100.
class rescaling {
 public:
  /// @param together  how many vectors are combined at once
  /// @param format    of the vectors
  rescaling(std::size_t parts, std::size_t vectors, std::size_t together, number_format format)
      : parts_(parts),
        vectors_(vectors),
        largest_square_(largest_mixed_square(format)),
        first_step_(format == number_format::binary64 ? 600 : 128),
        gram_(parts * packed_size(together)),
        exponent_(parts * vectors, 0),
        by_(parts * together),
        wanted_(together, 0) {}

  /// From here on, it is about these vectors, whose matrices are read next.
  void select(const input_list& inputs) { inputs_ = inputs; }
  /// The packed matrices of all parts as they are multiplied, one after the other.
  void read(std::span<const double> matrices) { std::ranges::copy(matrices, gram_.begin()); }
  gram_view matrix(std::size_t part) const { return {gram_.data() + part * packed_size(inputs_.count), inputs_.count}; }
  /// Input i is zero from here on, or does not count.
  void forget(std::size_t i) {
    for (std::size_t part = 0; part < parts_; ++part) {
      exponent(part, inputs_.at(i)) = 0;
      for (std::size_t j = 0; j < inputs_.count; ++j) gram_[part * packed_size(inputs_.count) + packed_index(i, j)] = 0;
    }
  }

  /// By what a part of a vector has been multiplied, as an exponent of two.
  int& exponent(std::size_t part, std::size_t vector) { return exponent_[part * vectors_ + vector]; }
  int exponent(std::size_t part, std::size_t vector) const { return exponent_[part * vectors_ + vector]; }
  /// What part of input i to multiply by now, likewise.
  int by(std::size_t part, std::size_t i) const { return by_[part * inputs_.count + i]; }
  /// That has been done.
  void note_multiplied() {
    for_each_square([&](std::size_t part, std::size_t i, double) { exponent(part, inputs_.at(i)) += by(part, i); });
  }

  /// First: brings squares that leave the range back into it. @return whether any part is multiplied, now or before
  bool begin() {
    is_multiplied_ = false;
    for_each_square([&](std::size_t part, std::size_t i, double square) {
      const bool is_small = square < smallest_safe_square && square > 0;
      // NaN hides whether other elements are long.
      const bool is_large = square > largest_square_ || is_nan(square);
      const int step = is_large ? -first_step_ : is_small ? first_step_ : 0;
      by_[part * inputs_.count + i] = step;
      is_multiplied_ = is_multiplied_ || step != 0 || exponent(part, inputs_.at(i)) != 0;
    });
    return is_multiplied_;
  }
  /// Then, where begin() has said so: brings each part near 1.
  void normalize() {
    for_each_square([&](std::size_t part, std::size_t i, double square) {
      by_[part * inputs_.count + i] = square > 0 ? -std::ilogb(std::sqrt(square)) : 0;
    });
  }

  bool is_finite(std::size_t i) const {
    for (std::size_t part = 0; part < parts_; ++part)
      if (!detail::is_finite(matrix(part)(i, i))) return false;
    return true;
  }
  bool is_finite() const {  // all of them
    for (std::size_t i = 0; i < inputs_.count; ++i)
      if (!is_finite(i)) return false;
    return true;
  }
  /// The norm of input i as it was, of a part or of all. One that is beyond the largest double is that.
  double norm(std::size_t part, std::size_t i) const {
    return unscaled(std::sqrt(matrix(part)(i, i)), -exponent(part, inputs_.at(i)));
  }
  double norm(std::size_t i) const {
    const int exponent = is_multiplied_ ? magnitude(i).value_or(0) : 0;
    return unscaled(norm_over(i, exponent), exponent);
  }

  /// The matrix of whole vectors at the common scale. @param packed  receives it
  void find_common(std::optional<int> lift, std::span<double> packed) {
    std::optional<int> largest, smallest;
    for (std::size_t i = 0; i < inputs_.count; ++i) {
      const auto exponent = exponent_of_norm(i);
      if (!exponent) continue;
      largest = std::max(largest.value_or(*exponent), *exponent);
      smallest = std::min(smallest.value_or(*exponent), *exponent);
    }
    common_ = largest ? -*largest + (lift ? 0 : std::min((*largest - *smallest) / 2, 500)) : 0;
    for (std::size_t i = 0; i < inputs_.count; ++i) {
      const auto exponent = exponent_of_norm(i);
      wanted_[i] = common_ + (lift && exponent ? std::max(0, *largest - *exponent - *lift) : 0);
    }
    std::ranges::fill(packed, 0.0);
    for (std::size_t part = 0; part < parts_; ++part)
      for (std::size_t i = 0; i < inputs_.count; ++i)
        for (std::size_t j = 0; j <= i; ++j)
          packed[packed_index(i, j)] += std::ldexp(matrix(part)(i, j), missing(part, i) + missing(part, j));
  }
  /// The same of vectors that have not been multiplied, or are not finite.
  void add_parts(std::span<double> packed) {
    common_ = 0;
    std::ranges::fill(wanted_, 0);
    std::ranges::fill(packed, 0.0);
    for (std::size_t part = 0; part < parts_; ++part)
      for (std::size_t e = 0; e < packed_size(inputs_.count); ++e)
        packed[e] += gram_[part * packed_size(inputs_.count) + e];
  }
  /// What all vectors are multiplied by there, at least, and what input i is multiplied by; as exponents of two.
  int common() const { return common_; }
  int wanted(std::size_t i) const { return wanted_[i]; }
  /// By what a part of input i, as it is multiplied, is to be multiplied to get there; zeros need nothing.
  int missing(std::size_t part, std::size_t i) const {
    return is_zero(matrix(part)(i, i)) ? 0 : wanted_[i] - exponent(part, inputs_.at(i));
  }

  /// A number times a power of two; the largest double where that is finite and beyond it.
  static double unscaled(double number, int exponent) {
    const double result = std::ldexp(number, exponent);
    return detail::is_finite(number) ? std::min(result, std::numeric_limits<double>::max()) : result;
  }

 private:
  template <class Visitor>
  void for_each_square(const Visitor& visit) const {
    for (std::size_t part = 0; part < parts_; ++part)
      for (std::size_t i = 0; i < inputs_.count; ++i) visit(part, i, matrix(part)(i, i));
  }
  /// The binary exponent of the longest part's norm; none of zeros.
  std::optional<int> magnitude(std::size_t i) const {
    std::optional<int> largest;
    for (std::size_t part = 0; part < parts_; ++part)
      if (const double square = matrix(part)(i, i); square > 0 && detail::is_finite(square)) {
        const int exponent_of_part = std::ilogb(std::sqrt(square)) - exponent(part, inputs_.at(i));
        largest = std::max(largest.value_or(exponent_of_part), exponent_of_part);
      }
    return largest;
  }
  /// That of the whole norm.
  std::optional<int> exponent_of_norm(std::size_t i) const {
    auto found = magnitude(i);
    if (found) *found += std::ilogb(norm_over(i, *found));
    return found;
  }
  /// ‖input i‖ / 2^divisor.
  double norm_over(std::size_t i, int divisor) const {
    double sum = 0;
    for (std::size_t part = 0; part < parts_; ++part)
      sum += std::ldexp(matrix(part)(i, i), -2 * (exponent(part, inputs_.at(i)) + divisor));
    return std::sqrt(sum);
  }

  std::size_t parts_, vectors_;
  double largest_square_;  // beyond which a part is multiplied
  int first_step_;         // by which it is brought into range at first, as an exponent of two
  input_list inputs_;
  std::vector<double> gram_;   // of each part of the inputs, as they are multiplied
  std::vector<int> exponent_;  // of each part of each vector
  std::vector<int> by_;        // of each part of each input
  std::vector<int> wanted_;    // of each input
  int common_ = 0;
  bool is_multiplied_ = false;  // any part of the inputs
};

/// The leaves [first, middle) are combined with [middle, last).
struct merge {
  std::size_t first, middle, last;
};

/// Of a segment that is recombined, this rank's elements, and how many it has in all.
struct recombined_range {
  index_range elements;  ///< counted from the origin
  std::size_t length;
  /// Where this rank's elements of each segment are, counted from the first of these elements; of itself, unless it stands
  /// for all segments of the window.
  std::vector<index_range> parts;
  /// What counts on another rank, though it is here, too: counted from the first of these elements, ascending.
  std::vector<index_range> measured_elsewhere{};
};

/// One segment on its way through recombine.
struct recombined_segment {
  /// @param together        how many vectors are combined at once
  /// @param with_distances  whether their distances may be measured
  recombined_segment(const space_ref& space, const space_for_copies& in, vector_list vectors,
                     const recombined_range& range, std::size_t number, std::span<const std::size_t> leaf_counts,
                     std::size_t together, bool with_distances)
      : elements(range.elements),
        parts(range.parts),
        is_scalar(range.length == 1),
        segment(number),
        norms(parts.size() * vectors.size()),
        weights(vectors.size(), 1),
        result_norms(parts.size()),
        counts(leaf_counts.begin(), leaf_counts.end()),
        noise(vectors.size(), 0),
        scale(parts.size(), vectors.size(), together, space.format()),
        gram(packed_size(together)),
        squared_distances(with_distances ? packed_size(together) : 0),
        copies(space, in, vectors, range.elements, range.measured_elsewhere, with_distances ? 1 : 0) {}

  std::span<double> norms_of(std::size_t part) {
    return std::span(norms).subspan(part * weights.size(), weights.size());
  }
  std::span<const double> norms_of(std::size_t part) const {
    return std::span(norms).subspan(part * weights.size(), weights.size());
  }

  index_range elements;            ///< counted from the origin
  std::vector<index_range> parts;  ///< see recombined_range
  bool is_scalar;                  ///< one element, over all ranks
  std::size_t segment;             ///< its number in the window

  std::vector<double> norms;         ///< ‖vector i‖, by part
  std::vector<double> weights;       ///< the result is Σ weights[i]·vector i
  std::vector<double> result_norms;  ///< by part

  // Of the subtree that begins at a leaf: how many gradients it combines, and the norm up to which it is nothing but
  // rounding errors.
  std::vector<std::size_t> counts;
  std::vector<double> noise;

  rescaling scale;

  // Of the merge that is under way.
  std::vector<double> gram;               // what the rule is told
  std::vector<double> squared_distances;  // none under a rule that does not compare them
  bool has_differences = false;           // whether they are there
  std::size_t matrices = 0;               // how many are being added over the ranks
  bool is_rescaled = false, is_finite = true;

  segment_copies copies;  // last: once the space writes to them, nothing else may fail here
};

}  // namespace adasum::detail
