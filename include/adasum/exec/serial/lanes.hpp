// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <type_traits>

#include "../../core/gram.hpp"
#include "blocks.hpp"
#include "elements.hpp"
#include "simd.hpp"

#ifdef __NVCC__  // its front end does not know `#pragma GCC unroll`; the host's compiler does
#pragma nv_diagnostic push
#pragma nv_diag_suppress 1675
#endif

/// Sums that kernels keep in registers.
///
/// Reading in whole cache lines vectors that begin within one, as long vectors from malloc do, and most segments. A
/// register of 64 bytes spans two lines there: twice the accesses, and from memory a quarter more time (Zen 5). So
/// kernels read the first few elements, the head, by themselves, and go on from the next boundary.
///
/// An element then stands `head` lanes before its place, and elements of the first `head` lanes one chain earlier in
/// the last lanes: the lanes are rotated. Sums of lanes must not depend on where vectors lie, so they are rotated back.
namespace adasum::detail::serial {

/// The first `head` elements, in the last lanes, and zeros.
/// @param others_before  whether as many elements as there are lanes lie before `from`
template <std::size_t Bytes, class T>
[[gnu::always_inline]] inline void load_head(vector<T, Bytes>& out, const T* from, std::size_t head,
                                             bool others_before) {
  constexpr std::size_t lanes = Bytes / sizeof(T);
  if (others_before) {
    lane_mask<T, Bytes> bits, mask;
    first_lanes<T, Bytes>(mask, lanes - head);
    __builtin_memcpy(&bits, from - (lanes - head), Bytes);
    bit_copy(out, lane_mask<T, Bytes>(bits & ~mask));
  } else {
    alignas(Bytes) T padded[lanes] = {};
    copy_fewer<Bytes, sizeof(T)>(padded + (lanes - head), from, head * sizeof(T));
    __builtin_memcpy(&out, padded, Bytes);
  }
}

/// `Parts` vectors of doubles, lane after lane: each goes `head` lanes on, the last ones to the beginning.
template <std::size_t Bytes, std::size_t Parts>
[[gnu::always_inline]] inline void rotate_lanes_back(vector<double, Bytes> (&sums)[Parts], std::size_t head) {
  constexpr std::size_t lanes = Parts * Bytes / sizeof(double);
  double twice[2 * lanes];
  __builtin_memcpy(twice, sums, sizeof(sums));
  __builtin_memcpy(twice + lanes, sums, sizeof(sums));
  __builtin_memcpy(sums, twice + (lanes - head), sizeof(sums));
}

/// Accumulators of type L (float or double) for the inner products of Count vectors, Count being 1 or 2.
template <std::size_t Bytes, class L, std::size_t Count, scalar T>
struct lane_sums {
  static constexpr std::size_t pairs = packed_size(Count);
  /// Whether lanes are rotated (see above): each must take every so many'th element; and registers that are no
  /// whole cache line span two of them only now and then, which costs less than rotating.
  static constexpr bool can_rotate = std::is_same_v<L, T> && Bytes == 64;
  /// Elements that one add() takes from each vector.
  static constexpr std::size_t width = chains * (Bytes / sizeof(compute_type<T>));

  vector<L, Bytes> sums[pairs][chains] = {};

  [[gnu::always_inline]] void add_products(const vector<L, Bytes> (&value)[Count], std::size_t chain) {
#pragma GCC unroll 2
    for (std::size_t i = 0; i < Count; ++i)
#pragma GCC unroll 2
      for (std::size_t j = 0; j <= i; ++j) add_product<L, Bytes>(sums[packed_index(i, j)][chain], value[i], value[j]);
  }

  /// Adds the first `head` elements of each vector, and moves behind them: before everything else. From then on the
  /// lanes are rotated, until totals().
  [[gnu::always_inline]] void add_head(const T* (&at)[Count], std::size_t head, bool others_before)
    requires can_rotate
  {
    vector<T, Bytes> value[Count];
#pragma GCC unroll 2
    for (std::size_t i = 0; i < Count; ++i) {
      load_head<Bytes>(value[i], at[i], head, others_before);
      at[i] += head;
    }
    add_products(value, chains - 1);
  }

  /// Adds `width` elements of each vector.
  [[gnu::always_inline]] void add(const T* const (&at)[Count]) {
#pragma GCC unroll 4
    for (std::size_t c = 0; c < chains; ++c) {
      vector<compute_type<T>, Bytes> value[Count];
#pragma GCC unroll 2
      for (std::size_t i = 0; i < Count; ++i) {
        load<Bytes>(value[i], at[i] + c * (width / chains));
        keep_in_register(value[i]);
      }
      if constexpr (std::is_same_v<L, compute_type<T>>) {
        add_products(value, c);
      } else {
        vector<L, Bytes> low[Count], high[Count];
#pragma GCC unroll 2
        for (std::size_t i = 0; i < Count; ++i) widen<Bytes>(low[i], high[i], value[i]);
        add_products(low, c);
        add_products(high, c);
      }
    }
  }

  /// Adds as many whole widths as there are in `length` elements, and moves behind them.
  /// @param ahead  how many elements further on the next ones are asked for; 0 for not at all
  [[gnu::always_inline]] std::size_t add_all(const T* (&at)[Count], std::size_t length, std::size_t ahead) {
    return ahead == 0 ? add_widths<false>(at, length, ahead) : add_widths<true>(at, length, ahead);
  }

  /// The inner products. @param head  of add_head, or 0
  [[gnu::always_inline]] void totals(double (&gram)[packed_size(2)], std::size_t head) {
#pragma GCC unroll 3
    for (std::size_t pair = 0; pair < pairs; ++pair) gram[pair] = total(sums[pair], head);
  }

 private:
  [[gnu::always_inline]] static double total(vector<L, Bytes> (&sum)[chains], std::size_t head) {
    if constexpr (can_rotate)
      if (head != 0) rotate_chains_back(sum, head);
    constexpr std::size_t parts = sizeof(double) / sizeof(L);
    vector<double, Bytes> all[parts] = {};
    if constexpr (parts == 1) {
      sum[0] += sum[1];
      sum[2] += sum[3];
      keep_order(sum[0]);
      keep_order(sum[2]);
      all[0] = sum[0] + sum[2];
    } else {
#pragma GCC unroll 4
      for (std::size_t c = 0; c < chains; ++c) {
        vector<double, Bytes> low, high;
        widen<Bytes>(low, high, sum[c]);
        all[0] += low;
        all[1] += high;
        keep_order(all[0]);
        keep_order(all[1]);
      }
    }
    if (head != 0) rotate_lanes_back<Bytes>(all, head);
    if constexpr (parts == 2) all[0] += all[1];
    return sum_of_lanes<Bytes>(all[0]);
  }

  /// The last `head` lanes of each chain belong to the next one.
  [[gnu::always_inline]] static void rotate_chains_back(vector<L, Bytes> (&sum)[chains], std::size_t head) {
    lane_mask<L, Bytes> mask, rotated[chains], bits;
    first_lanes<L, Bytes>(mask, Bytes / sizeof(L) - head);
#pragma GCC unroll 4
    for (std::size_t c = 0; c < chains; ++c) bit_copy(rotated[c], sum[c]);
#pragma GCC unroll 4
    for (std::size_t c = 0; c < chains; ++c) {
      where(bits, mask, rotated[c], rotated[(c + chains - 1) % chains]);
      bit_copy(sum[c], bits);
    }
  }

  template <bool Ask>
  [[gnu::always_inline]] std::size_t add_widths(const T* (&at)[Count], std::size_t length, std::size_t ahead) {
    std::size_t x = 0;
    for (; x + width <= length; x += width) {
      if constexpr (Ask)
        for (std::size_t i = 0; i < Count; ++i) prefetch<width * sizeof(T)>(at[i] + ahead);
      add(at);
      for (std::size_t i = 0; i < Count; ++i) at[i] += width;
    }
    return x;
  }
};

/// Double accumulators for the products of the vectors [i, i + Rows) with the vectors [j, j + Columns), or those of
/// [i, i + Rows) with each other where the tile lies on the diagonal.
template <std::size_t Bytes, std::size_t Rows, std::size_t Columns, bool Diagonal>
struct tile_sums {
  static constexpr std::size_t step = Bytes / sizeof(double);

  vector<double, Bytes> sums[Rows][Columns] = {};

  /// Adds the products of `step` elements from x on.
  /// @param ahead  how many elements further on those of the rows are asked for; 0 for not at all
  template <class Element>
  [[gnu::always_inline]] void add(const Element* const (&left)[Rows], const Element* const (&right)[Columns],
                                  std::size_t x, std::size_t ahead) {
    vector<double, Bytes> b[Columns];
#pragma GCC unroll 4
    for (std::size_t c = 0; c < Columns; ++c) load_each<double, Bytes>(b[c], right[c] + x);
#pragma GCC unroll 4
    for (std::size_t r = 0; r < Rows; ++r) {
      if (ahead != 0) prefetch<step * sizeof(Element)>(left[r] + x + ahead);
      vector<double, Bytes> a;
      if constexpr (Diagonal)
        a = b[r];
      else
        load_each<double, Bytes>(a, left[r] + x);
#pragma GCC unroll 4
      for (std::size_t c = 0; c < (Diagonal ? r + 1 : Columns); ++c) sums[r][c] += a * b[c];
    }
  }

  /// The sums of a row are neighbours in the packed matrix, so they are added in twos.
  [[gnu::always_inline]] void add_to(double* gram, std::size_t i, std::size_t j) const {
#pragma GCC unroll 4
    for (std::size_t r = 0; r < Rows; ++r) {
      double* const row = gram + packed_size(i + r) + j;
      const std::size_t entries = Diagonal ? r + 1 : Columns;
#pragma GCC unroll 2
      for (std::size_t c = 0; c + 2 <= entries; c += 2) {
        vector<double, 16> both, total;
        sums_of_lanes<Bytes>(both, sums[r][c], sums[r][c + 1]);
        __builtin_memcpy(&total, row + c, sizeof(total));
        total += both;
        __builtin_memcpy(row + c, &total, sizeof(total));
      }
      if (entries % 2 != 0) row[entries - 1] += sum_of_lanes<Bytes>(sums[r][entries - 1]);
    }
  }
};

/// Σ wᵢ vᵢ of `width` elements, in double lanes.
template <std::size_t Bytes, scalar T>
struct weighted_lanes {
  static constexpr std::size_t step = Bytes / sizeof(double), width = chains * step;

  vector<double, Bytes> sums[chains];

  weighted_lanes() : sums() {}  // and no `= {}` above: nvcc 13 fails on it

  [[gnu::always_inline]] void add(double weight, const T* from) {
    if constexpr (sizeof(T) == sizeof(compute_type<T>)) {
#pragma GCC unroll 4
      for (std::size_t c = 0; c < chains; ++c) {
        vector<double, Bytes> value;
        load_each<double, Bytes>(value, from + c * step);
        add_only_product<double, Bytes>(sums[c], weight, value);
      }
    } else {
#pragma GCC unroll 2
      for (std::size_t c = 0; c < chains; c += 2) {
        vector<float, Bytes> value;
        vector<double, Bytes> low, high;
        load<Bytes>(value, from + c * step);
        widen<Bytes>(low, high, value);
        add_only_product<double, Bytes>(sums[c], weight, low);
        add_only_product<double, Bytes>(sums[c + 1], weight, high);
      }
    }
  }

  /// Rounded to float or double, and then to Out.
  template <scalar Out>
  [[gnu::always_inline]] void store_to(Out* to) const {
#pragma GCC unroll 4
    for (std::size_t c = 0; c < chains; ++c) {
      const auto value = __builtin_convertvector(sums[c], vector<compute_type<Out>, step * sizeof(compute_type<Out>)>);
      store<sizeof(value)>(to + c * step, value);
    }
  }
};

}  // namespace adasum::detail::serial

#ifdef __NVCC__
#pragma nv_diagnostic pop
#endif
