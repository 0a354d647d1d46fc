// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <quadmath.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

/// Linear algebra in 128 bits (113 of them digits), of the shortest kind: references need no speed. g++ only.
namespace adasum::test::reference {

using quad = __float128;
using quads = std::vector<quad>;
using quad_matrix = std::vector<quads>;  ///< of columns, or of gradients

inline constexpr quad epsilon = 0x1p-52;  // of double

inline quad dot(const quads& a, const quads& b) {
  quad sum = 0;
  for (std::size_t x = 0; x < a.size(); ++x) sum += a[x] * b[x];
  return sum;
}
inline quad norm(const quads& a) { return sqrtq(dot(a, a)); }
inline quads& add(quads& to, quad factor, const quads& what) {
  for (std::size_t x = 0; x < to.size(); ++x) to[x] += factor * what[x];
  return to;
}
inline quads times(quads a, quad factor) {
  for (quad& x : a) x *= factor;
  return a;
}
inline quad distance(quads a, const quads& b) { return norm(add(a, -1, b)); }
inline quad sum(const quads& a) {
  quad total = 0;
  for (const quad x : a) total += x;
  return total;
}
inline quads combination(const quad_matrix& g, const quads& weights) {
  quads result(g.front().size());
  for (std::size_t i = 0; i < g.size(); ++i) add(result, weights[i], g[i]);
  return result;
}
/// Σ|wᵢ|‖gᵢ‖: what rounding errors are measured by.
inline quad mass(const quad_matrix& g, const quads& weights) {
  quad total = 0;
  for (std::size_t i = 0; i < g.size(); ++i) total += fabsq(weights[i]) * norm(g[i]);
  return total;
}
inline quads lengths_of(const quad_matrix& g) {
  quads lengths;
  for (const auto& v : g) lengths.push_back(norm(v));
  return lengths;
}
/// Of those that are not zero.
inline quad_matrix unit_vectors(quad_matrix g) {
  for (auto& v : g)
    if (const quad length = norm(v); length > 0) v = times(v, 1 / length);
  return g;
}
inline quad_matrix gram_of(const quad_matrix& g) {
  quad_matrix gram(g.size(), quads(g.size()));
  for (std::size_t i = 0; i < g.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) gram[i][j] = gram[j][i] = dot(g[i], g[j]);
  return gram;
}
inline quads multiply(const quad_matrix& symmetric, const quads& x) {
  quads result;
  for (const auto& row : symmetric) result.push_back(dot(row, x));
  return result;
}

/// The solutions of Mx = b for positive definite M, by Cholesky's factors. Where a pivot is nothing but rounding, as
/// near the solution of a program that has several, x is 0 there.
class factors {
 public:
  explicit factors(quad_matrix m) : l_(std::move(m)) {
    for (std::size_t i = 0; i < l_.size(); ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        quad entry = l_[i][j];
        for (std::size_t k = 0; k < j; ++k) entry -= l_[i][k] * l_[j][k];
        const bool is_rounding = i == j && entry <= 1e-31Q * l_[i][i];
        l_[i][j] = is_rounding ? 1e100Q : i == j ? sqrtq(entry) : entry / l_[j][j];
      }
  }
  quads solve(quads b) const {
    const auto n = b.size();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < i; ++k) b[i] -= l_[i][k] * b[k];
      b[i] /= l_[i][i];
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t k = i + 1; k < n; ++k) b[i] -= l_[k][i] * b[k];
      b[i] /= l_[i][i];
    }
    return b;
  }

 private:
  quad_matrix l_;
};

/// Singular values and vectors of a matrix, of its columns themselves: one-sided Jacobi rotations (Hestenes), which find
/// small singular values to full accuracy also where columns differ in length (Demmel and Veselić 1992).
struct singular_values {
  explicit singular_values(quad_matrix columns) : left(std::move(columns)), right(left.size(), quads(left.size())) {
    const auto n = left.size();
    for (std::size_t i = 0; i < n; ++i) right[i][i] = 1;
    for (bool turned = true; turned;) {
      turned = false;
      for (std::size_t j = 1; j < n; ++j)
        for (std::size_t i = 0; i < j; ++i) {
          const quad a = dot(left[i], left[i]), b = dot(left[j], left[j]), c = dot(left[i], left[j]);
          if (c == 0 || fabsq(c) <= 1e-30Q * sqrtq(a) * sqrtq(b)) continue;
          if (sqrtq(a) < 1e-33Q * sqrtq(b) || sqrtq(b) < 1e-33Q * sqrtq(a)) continue;  // one is rounding
          turned = true;
          const quad zeta = (b - a) / (2 * c);
          const quad t = (zeta < 0 ? -1 : 1) / (fabsq(zeta) + sqrtq(1 + zeta * zeta));
          const quad cosine = 1 / sqrtq(1 + t * t), sine = cosine * t;
          for (auto* m : {&left, &right}) {
            auto &u = (*m)[i], &v = (*m)[j];
            for (std::size_t x = 0; x < u.size(); ++x) {
              const quad old = u[x];
              u[x] = cosine * old - sine * v[x];
              v[x] = sine * old + cosine * v[x];
            }
          }
        }
    }
    values = lengths_of(left);
  }
  quad largest() const { return *std::ranges::max_element(values); }

  quad_matrix left;   ///< columns: the left vectors times their values
  quad_matrix right;  ///< columns
  quads values;
};

/// What a convex program asks for: the slope and the curvature of its function at x.
struct local_model {
  quads slope;
  quad_matrix curvature;
};

/// argmin F(x), x ≥ 0 and, if a is not empty, a·x = 1, by a primal-dual interior-point method: Newton's on the conditions
/// of optimality with xᵢ sᵢ = μ, for μ → 0.
inline quads minimum(const std::function<local_model(const quads&)>& model, quads x, const quads& a = {}) {
  const auto n = x.size();
  quads s(n, 1);
  quad y = 0, mu = 1;
  for (int round = 0; round < 400; ++round) {
    auto [slope, m] = model(x);
    quad gap = 0, residual = 0;
    for (std::size_t i = 0; i < n; ++i) {
      gap += x[i] * s[i] / static_cast<quad>(n);
      residual = std::max(residual, fabsq(slope[i] - s[i] - (a.empty() ? 0 : y * a[i])));
    }
    if (gap < 1e-50Q && residual < 1e-30Q) break;
    if (gap < 1e-60Q) break;
    mu = gap * (residual < 1 ? 0.05Q : 0.5Q);
    quads right(n);
    for (std::size_t i = 0; i < n; ++i) {
      m[i][i] += s[i] / x[i];
      right[i] = -slope[i] + (a.empty() ? 0 : y * a[i]) + mu / x[i];
    }
    const factors solver(m);
    quads dx = solver.solve(right);
    quad dy = 0;
    if (!a.empty()) {
      const quads q = solver.solve(a);
      dy = (1 - dot(a, x) - dot(a, dx)) / dot(a, q);
      add(dx, dy, q);
    }
    quads ds(n);
    quad step = 1;
    for (std::size_t i = 0; i < n; ++i) {
      ds[i] = mu / x[i] - s[i] - s[i] / x[i] * dx[i];
      if (dx[i] < 0) step = std::min(step, -0.95Q * x[i] / dx[i]);
      if (ds[i] < 0) step = std::min(step, -0.95Q * s[i] / ds[i]);
    }
    add(x, step, dx);
    add(s, step, ds);
    y += step * dy;
  }
  return x;
}

}  // namespace adasum::test::reference
