// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "../../core/error.hpp"
#include "../../detail/references/shared_window_ref.hpp"
#include "mailbox.hpp"

namespace adasum::detail::simulated {

/// What a rank does while it does not have the turn.
enum class state { ready, asks, late, receives, sends, meets, gone };

struct rank_state {
  state doing = state::ready;
  exchange* in = nullptr;  // receives, sends
  int awaited = -1;        // in a deadlock: the peer of that exchange
  bool has_left = false, is_cut_off = false;
  reduction_activity activity = reduction_activity::scheduled;
  std::size_t exchanges = 0, failed_exchanges = 0, shares = 0, meetings = 0;  // so many so far
  std::uint64_t asked_in = 0;                                                 // the event before which it has asked
  std::size_t asked = 0;                                                      // how often since then
  std::uint64_t late_until = 0;                                               // late: the turn from which on it goes on
  bool is_armed = true;   // whether the fault may come
  std::size_t calls = 0;  // of which one goes wrong: so many so far
};

/// For people.
inline std::string who_waits_for_whom(std::span<const rank_state> ranks) {
  std::string text;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto& one = ranks[r];
    const auto peer = [&] { return joined({"rank ", one.awaited}); };
    if (one.doing == state::gone) continue;
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(r);
    switch (one.doing) {
      case state::receives: text += " waits for a message of " + peer(); break;
      case state::sends: text += " waits until " + peer() + " takes a message"; break;
      case state::meets: text += " waits until all ranks meet"; break;
      case state::asks: text += " asks in vain, by test() or in shared memory"; break;
      case state::ready:
      case state::late:
      case state::gone: text += " is at work"; break;
    }
    append(text, {", after ", counted(one.exchanges, "exchange")});
    if (one.activity == reduction_activity::unscheduled) text += ", in a sum that no stage calls for";
  }
  return text;
}

}  // namespace adasum::detail::simulated
