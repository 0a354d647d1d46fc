// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "quad.hpp"

namespace adasum::test::reference {

/// Eigenvalues and eigenvectors of a symmetric matrix in 128 bits, to about n·1e-34 of the largest: Householder's reduction
/// to tridiagonal form, and QL steps with implicit shifts (Golub and Van Loan, "Matrix Computations", section 8.3).
class symmetric_eigen {
 public:
  explicit symmetric_eigen(quad_matrix m) : a_(std::move(m)), below_(a_.size()) {
    const auto n = a_.size();
    values.resize(n);
    vectors.assign(n, quads(n));
    for (std::size_t i = 0; i < n; ++i) vectors[i][i] = 1;
    for (const auto& row : a_) tiny_ = std::max(tiny_, 1e-35_q * norm(row));
    for (std::size_t k = 0; k + 2 < n; ++k) reflect(k);
    for (std::size_t i = 0; i < n; ++i) values[i] = a_[i][i];
    for (std::size_t i = 0; i + 1 < n; ++i) below_[i] = a_[i + 1][i];
    for (std::size_t first = 0; first < n; ++first) isolate(first);
  }

  quads values;         ///< in no order
  quad_matrix vectors;  ///< vectors[k] belongs to values[k]

 private:
  /// A ← HAH with H = 1 - 2vvᵀ, so that column k is zero below its second entry; the vectors, as rows, likewise.
  void reflect(std::size_t k) {
    const auto n = a_.size();
    quads v(n);
    quad square = 0;
    for (std::size_t i = k + 1; i < n; ++i) square += (v[i] = a_[i][k]) * v[i];
    const quad rest = square - v[k + 1] * v[k + 1];
    if (rest <= 0) return;
    v[k + 1] += v[k + 1] < 0 ? -sqrtq(square) : sqrtq(square);
    v = times(v, 1 / norm(v));
    quads p = multiply(a_, v);
    add(p, -dot(v, p), v);
    for (std::size_t i = k; i < n; ++i)
      for (std::size_t j = k; j < n; ++j) a_[i][j] -= 2 * (v[i] * p[j] + p[i] * v[j]);
    // A = QTQᵀ: vectors[j] is row j of Qᵀ.
    quads q(n);
    for (std::size_t j = k + 1; j < n; ++j) add(q, v[j], vectors[j]);
    for (std::size_t j = k + 1; j < n; ++j) add(vectors[j], -2 * v[j], q);
  }

  /// QL steps until values[first] stands alone.
  void isolate(std::size_t first) {
    const auto n = values.size();
    for (int round = 0; round < 200; ++round) {
      auto last = first;  // of the block that begins there
      while (last + 1 < n && fabsq(below_[last]) > tiny_) ++last;
      if (last == first) return;
      quad g = (values[first + 1] - values[first]) / (2 * below_[first]);
      const quad r = hypotq(g, 1);
      g = values[last] - values[first] + below_[first] / (g + (g < 0 ? -r : r));
      quad sine = 1, cosine = 1, shift = 0;
      auto i = last;
      for (; i > first; --i) {
        const quad f = sine * below_[i - 1], b = cosine * below_[i - 1], length = hypotq(f, g);
        if (i < last) below_[i] = length;
        if (length == 0) {  // the block falls apart
          values[i] -= shift;
          break;
        }
        sine = f / length;
        cosine = g / length;
        g = values[i] - shift;
        const quad t = (values[i - 1] - g) * sine + 2 * cosine * b;
        shift = sine * t;
        values[i] = g + shift;
        g = cosine * t - b;
        for (std::size_t x = 0; x < n; ++x) {
          const quad upper = vectors[i][x], lower = vectors[i - 1][x];
          vectors[i][x] = sine * lower + cosine * upper;
          vectors[i - 1][x] = cosine * lower - sine * upper;
        }
      }
      below_[last] = 0;
      if (i > first) continue;
      values[first] -= shift;
      below_[first] = g;
    }
  }

  quad_matrix a_;
  quads below_;  // the diagonal
  quad tiny_ = 0;
};

}  // namespace adasum::test::reference
