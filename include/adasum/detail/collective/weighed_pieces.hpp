// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "../../core/concepts.hpp"
#include "../../core/segments.hpp"
#include "transport/transport.hpp"

namespace adasum::detail {

/// The stages of the pieces that are weighed together (planned_stage), as one stage of this rank's parts, one behind the
/// other. Empty where there are none, or this rank does not weigh them.
template <scalar T, execution_space<T> Space>
class weighed_pieces {
 public:
  /// @param space, stages  must outlive this object
  weighed_pieces(const Space& space, std::span<const bound_stage<T>> stages, std::size_t segments)
      : space_(space), stages_(stages) {
    const auto& last = stages.back();
    if (!last.weighed_together || !last.survives()) return;
    std::size_t length = 0;
    for_each([&](const bound_stage<T>& piece) { length += piece.part().size(); });
    auto& all = all_.emplace(last);
    all.segments = {0, segments};
    all.held = all.parts[all.self] = {0, length};
  }

  const bound_stage<T>& as_one() const { return *all_; }

  /// Copies of the members' vectors for as_one(), for what works on all pieces at once: rare, so it allocates.
  /// @param data        the gradient
  /// @param takes_part  takes_part(i): the others are zero, whatever they hold
  template <class TakesPart>
  void gather(const T* data, const TakesPart& takes_part) {
    copies_.emplace(space_.template allocate<T>(all_->members.size() * length()));
    for (std::size_t i = 0; i < all_->members.size(); ++i) {
      if (!takes_part(i)) {
        clear(copy_of(i));
        continue;
      }
      T* to = copy_of(i);
      for_each([&](const bound_stage<T>& piece) {
        const auto size = piece.part().size();
        space_.copy(piece.elements->vector(piece, i, data), std::exchange(to, to + size), size);
      });
    }
  }
  /// Null if they have not been made.
  T* copy_of(std::size_t i) { return copies_ ? copies_->data() + i * length() : nullptr; }
  /// The result, from the first of them.
  void scatter(T* data) {
    const T* from = copy_of(0);
    for_each([&](const bound_stage<T>& piece) {
      const auto size = piece.part().size();
      space_.copy(std::exchange(from, from + size), data + piece.part().begin, size);
    });
    space_.fence();
    forget();
  }
  void forget() { copies_.reset(); }

 private:
  std::size_t length() const { return all_->part().size(); }
  template <class Visitor>
  void for_each(const Visitor& visit) const {
    for (const auto& stage : stages_)
      if (stage.weighed_together) visit(stage);
  }
  void clear(T* vector) const {
    constexpr double zero = 0;
    const std::array<std::size_t, 2> offsets{0, length()};
    const T* const in = vector;
    space_.mix(whole(segments_view{offsets}), std::span(&in, 1), &zero, vector);
  }

  const Space& space_;
  std::span<const bound_stage<T>> stages_;
  std::optional<bound_stage<T>> all_;
  std::optional<decltype(std::declval<const Space&>().template allocate<T>(0))> copies_;
};

}  // namespace adasum::detail
