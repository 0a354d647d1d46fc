// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#if LDBL_MANT_DIG != 113
#include <quadmath.h>
#endif

/// Linear algebra in 128 bits (113 of them digits), of the shortest kind: references need no speed. g++ only.
namespace adasum::test::reference {

#if LDBL_MANT_DIG == 113  // aarch64, riscv64, s390x: no library but the usual one has numbers of 128 bits there
using quad = long double;
inline quad fabsq(quad x) { return std::fabs(x); }
inline quad sqrtq(quad x) { return std::sqrt(x); }
inline quad hypotq(quad x, quad y) { return std::hypot(x, y); }
inline quad powq(quad x, quad y) { return std::pow(x, y); }
inline bool finiteq(quad x) { return std::isfinite(x); }
#else
using quad = __float128;
#endif
constexpr quad operator""_q(long double x) { return x; }

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
/// @tparam Real  of the factors: quad, or long double for a step that need not be so exact and takes a hundredth of the time
template <class Real = quad>
class factors {
 public:
  explicit factors(const quad_matrix& m) {
    constexpr bool exact = std::is_same_v<Real, quad>;
    const Real rounding = exact ? Real(1e-31L) : Real(1e-17L);
    for (const auto& row : m) l_.emplace_back(row.begin(), row.end());
    for (std::size_t i = 0; i < l_.size(); ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        Real entry = l_[i][j];
        for (std::size_t k = 0; k < j; ++k) entry -= l_[i][k] * l_[j][k];
        const bool is_rounding = i == j && entry <= rounding * l_[i][i];
        l_[i][j] = is_rounding ? Real(1e100L) : i == j ? static_cast<Real>(sqrtq(entry)) : entry / l_[j][j];
      }
  }
  quads solve(const quads& right) const {
    const auto n = right.size();
    std::vector<Real> b(right.begin(), right.end());
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < i; ++k) b[i] -= l_[i][k] * b[k];
      b[i] /= l_[i][i];
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t k = i + 1; k < n; ++k) b[i] -= l_[k][i] * b[k];
      b[i] /= l_[i][i];
    }
    return quads(b.begin(), b.end());
  }

 private:
  std::vector<std::vector<Real>> l_;
};

/// z = Σ zᵢ gᵢ, by its coefficients and its inner products with the gradients.
class spanned {
 public:
  /// @param gram, lengths  of the gradients; must outlive this object
  spanned(const quad_matrix& gram, const quads& lengths, quads coefficients)
      : z(std::move(coefficients)), products(multiply(gram, z)), gram_(gram), lengths_(lengths) {}

  void add(quad factor, std::size_t j) {
    z[j] += factor;
    reference::add(products, factor, gram_[j]);
  }
  quad length() const { return root(dot(z, products)); }
  quad distance(std::size_t j) const { return root(gram_[j][j] - 2 * products[j] + dot(z, products)); }
  quad mass() const {
    quad total = 0;
    for (std::size_t i = 0; i < z.size(); ++i) total += fabsq(z[i]) * lengths_[i];
    return total;
  }

  quads z, products;

 private:
  static quad root(quad square) { return square > 0 ? sqrtq(square) : 0; }
  const quad_matrix& gram_;
  const quads& lengths_;
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
  quad y = 0, mu = 1, last_step = 0;
  for (int round = 0; round < 400; ++round) {
    auto [slope, m] = model(x);
    quad gap = 0, residual = 0;
    for (std::size_t i = 0; i < n; ++i) {
      gap += x[i] * s[i] / static_cast<quad>(n);
      residual = std::max(residual, fabsq(slope[i] - s[i] - (a.empty() ? 0 : y * a[i])));
    }
    if (gap < 1e-50_q && residual < 1e-30_q) break;
    if (gap < 1e-60_q) break;
    // Near the end, where Newton's steps are taken whole, it converges faster.
    mu = gap * (residual >= 1 ? 0.5_q : gap < 1e-10_q && last_step > 0.9_q ? 1e-5_q : 0.05_q);
    quads right(n);
    for (std::size_t i = 0; i < n; ++i) {
      m[i][i] += s[i] / x[i];
      right[i] = -slope[i] + (a.empty() ? 0 : y * a[i]) + mu / x[i];
    }
    quads dx;
    quad dy = 0;
    const auto solve = [&](const auto& solver) {
      dx = solver.solve(right);
      if (a.empty()) return;
      const quads q = solver.solve(a);
      dy = (1 - dot(a, x) - dot(a, dx)) / dot(a, q);
      add(dx, dy, q);
    };
    gap > 1e-10_q ? solve(factors<long double>(m)) : solve(factors<quad>(m));
    quads ds(n);
    quad step = 1;
    for (std::size_t i = 0; i < n; ++i) {
      ds[i] = mu / x[i] - s[i] - s[i] / x[i] * dx[i];
      if (dx[i] < 0) step = std::min(step, -0.95_q * x[i] / dx[i]);
      if (ds[i] < 0) step = std::min(step, -0.95_q * s[i] / ds[i]);
    }
    add(x, step, dx);
    add(s, step, ds);
    y += step * dy;
    last_step = step;
  }
  return x;
}

}  // namespace adasum::test::reference
