// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "recording.hpp"

namespace adasum::test::model {

thread_local recording* recording::current = nullptr;

void recording::call(const std::string& what) {
  const inside now(*this);
  flush();
  add(what);
}
void recording::call_once(const std::string& what) {
  const inside now(*this);
  flush();
  if (runs_.back().empty() || runs_.back().back() != what) add(what);
}
void recording::begin_run() {
  const inside now(*this);
  flush();
  runs_.emplace_back();
  gradients_.clear();
  copies_.clear();
  is_in_run_ = true;
}

void recording::drop_plan() {
  const inside now(*this);
  flush();
  runs_.push_back({"drops its plan"});
}

void recording::gradient_is_at(std::size_t rank, const void* begin) {
  const inside now(*this);
  gradients_[rank] = static_cast<const std::byte*>(begin);
}
void recording::copy_is_at(std::size_t rank, const void* begin) {
  const inside now(*this);
  copies_[rank] = static_cast<const std::byte*>(begin);
}

void recording::access(const void* at, std::size_t bytes, bool writes) {
  if (is_inside_) return;
  const inside now(*this);
  const auto* const begin = static_cast<const std::byte*>(at);
  const auto* const end = begin + bytes;
  for (const auto& [rank, where] : gradients_) {
    if (rank == self_ && !is_in_run_) continue;
    for (std::size_t i = 0; i + 1 < cuts_.size(); ++i)
      if (begin < where + cuts_[i + 1] && end > where + cuts_[i])
        note("slice " + std::to_string(i) + " of rank " + std::to_string(rank) + "'s gradient", writes);
  }
  for (const auto& [rank, where] : copies_)  // nobody else writes its own
    if (rank != self_ && begin < where + cuts_.back() && end > where)
      note("the copy of rank " + std::to_string(rank) + "'s gradient", writes);
}
void recording::access(const std::string& what, bool writes) {
  if (is_inside_) return;
  const inside now(*this);
  note(what, writes);
}
/// What is written may as well be read: whoever races with a read does with a write.
void recording::note(const std::string& what, bool writes) {
  auto& is_written = accesses_[what];
  is_written = is_written || writes;
}
void recording::flush() {
  for (const auto& [what, is_written] : accesses_) add((is_written ? "  writes " : "  reads ") + what);
  accesses_.clear();
}

}  // namespace adasum::test::model
