// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../core/communicator_state.hpp"
#include "../../core/concepts.hpp"
#include "../../core/message.hpp"
#include "../../core/optional_members.hpp"
#include "refused_members.hpp"
#include "shared_window_ref.hpp"
#include "space_ref.hpp"

/// A communicator, as the engine sees it: a table of functions. The engine is no template.
namespace adasum::detail {

/// What can be posted; see the concept posting_communicator.
struct posting_table {
  owned_object (*make)();
  void (*post)(const void* comm, const void* space, std::span<const outgoing>, std::span<const incoming>,
               void* pending);
  bool (*test)(void* pending);
  void (*wait)(void* pending);
  void (*reserve)(const void* comm, std::size_t messages, std::size_t longest, void* pending);  ///< or null
};

/// Memory that the ranks share; see the concept shared_memory_communicator.
struct sharing_table {
  any_window (*share)(const void* comm, std::size_t bytes);
  bool (*can_share)(const void* comm);  ///< see own_sharing
  bool same_address_space;
};

/// The members of a communicator (core/concepts.hpp), for messages in memory of one space. What is optional there may be
/// null here.
struct communicator_table {
  void (*exchange)(const void* comm, const void* space, std::span<const outgoing>, std::span<const incoming>);
  void (*reserve)(const void* comm, std::size_t messages, std::size_t longest);
  void (*note_activity)(const void* comm, reduction_activity what);
  std::vector<int> (*nodes)(const void* comm);
  owned_object (*copy)(const void* comm);
  const posting_table* posting;
  const sharing_table* sharing;  ///< null, too, where the memory cannot hold gradients of the space
};

/// A communicator of the caller's, for messages in memory of a space. Whoever holds it sees to it that both live.
class communicator_ref {
 public:
  communicator_ref(const communicator_table& table, const void* comm, communicator_state* state, const void* space,
                   int rank, int size)
      : table_(&table), comm_(comm), state_(state), space_(space), rank_(rank), size_(size) {}

  int rank() const { return rank_; }
  int size() const { return size_; }
  void exchange(std::span<const outgoing> out, std::span<const incoming> in) const {
    table_->exchange(comm(), space_, out, in);
  }
  void reserve(std::size_t messages, std::size_t longest) const {
    if (table_->reserve != nullptr) table_->reserve(comm(), messages, longest);
  }
  /// Null where the communicator has none.
  communicator_state* state() const { return state_; }
  bool gave_up() const { return state_ && state_->gave_up(); }
  /// @throws bad_input  this thread must not use the communicator; nothing has been sent
  void require_usable(const char* call) const {
    if (state_) state_->require_usable(call);
  }
  bool has_reduction_in_flight() const { return state_ && state_->reduction_in_flight(); }
  void set_reduction_in_flight(bool is_in_flight) const {
    if (state_) state_->set_reduction_in_flight(is_in_flight);
  }
  /// Null where ranks tell each other by messages what they are about to do.
  shared_votes* votes() const { return state_ ? state_->votes() : nullptr; }
  void note_activity(reduction_activity what) const {
    if (table_->note_activity != nullptr) table_->note_activity(comm(), what);
  }
  /// The node of each rank; empty if the communicator does not say.
  std::vector<int> nodes() const { return table_->nodes != nullptr ? table_->nodes(comm()) : std::vector<int>(); }
  bool is_of_type(const communicator_ref& other) const { return table_ == other.table_; }
  /// A copy of the communicator, for whoever outlives it, and the reference to that, for a copy of the space.
  owned_object copy() const { return table_->copy(comm()); }
  communicator_ref to(const owned_object& copied, const owned_object& space) const {
    return {*table_, copied.get(), state_, space.get(), rank_, size_};
  }
  /// For a plan that state() keeps: a copy of the communicator there would keep state() alive, and so itself.
  /// @param handle  to the handle of the call that runs the plan
  communicator_ref through(const void* const& handle, const owned_object& space) const {
    auto found = to(no_object(), space);
    found.handle_ = &handle;
    return found;
  }
  const void* comm() const { return handle_ ? *handle_ : comm_; }

  // ── exchanges that are posted ──
  bool can_post() const { return table_->posting != nullptr; }
  /// An exchange in flight. @pre can_post(), here and below
  owned_object make_pending() const { return table_->posting->make(); }
  void post(std::span<const outgoing> out, std::span<const incoming> in, void* pending) const {
    table_->posting->post(comm(), space_, out, in, pending);
  }
  bool test(void* pending) const { return table_->posting->test(pending); }
  void wait(void* pending) const { table_->posting->wait(pending); }
  void reserve(std::size_t messages, std::size_t longest, void* pending) const {
    if (table_->posting->reserve != nullptr) table_->posting->reserve(comm(), messages, longest, pending);
  }

  // ── memory that ranks share ──
  bool can_share() const { return table_->sharing != nullptr && table_->sharing->can_share(comm()); }
  /// @pre can_share(), here and below
  bool same_address_space() const { return table_->sharing->same_address_space; }
  any_window share(std::size_t bytes) const { return table_->sharing->share(comm(), bytes); }

 private:
  const communicator_table* table_;
  const void* comm_;
  const void* const* handle_ = nullptr;  // in place of comm_, if not null
  communicator_state* state_;
  const void* space_;
  int rank_, size_;
};

// ── from the concept to the table ──

template <class Comm, class Space>
struct functions_of_communicator {
  static_assert(
      posting_communicator<Comm, Space> ||
          (requires { typename Comm::pending; } ? device_space<Space> : !names_post<Comm, Space>),
      "adasum: a communicator with post() or a type `pending` must be a posting_communicator: see core/concepts.hpp");

  template <class Object>  // see functions_of_space
  static const Comm& of(const Object* comm) {
    return *static_cast<const Comm*>(comm);
  }
  static const Space& space_of(const void* space) { return *static_cast<const Space*>(space); }

  static void exchange(const void* comm, const void* space, std::span<const outgoing> out,
                       std::span<const incoming> in) {
    of(comm).exchange(space_of(space), out, in);
  }
};

template <class Comm, class Space>
requires posting_communicator<Comm, Space>
struct functions_of_posting {
  using pending = typename Comm::pending;
  static pending& of(void* held) { return *static_cast<pending*>(held); }

  static constexpr posting_table table{
      []() -> owned_object {
        return {new pending(), [](void* held) { delete static_cast<pending*>(held); }};
      },
      [](const void* comm, const void* space, std::span<const outgoing> out, std::span<const incoming> in, void* held) {
        static_cast<const Comm*>(comm)->post(*static_cast<const Space*>(space), out, in, of(held));
      },
      [](void* held) { return of(held).test(); }, [](void* held) { of(held).wait(); },
      entry_if<reserves_pending<Comm>, decltype(posting_table::reserve)>(
          [](const auto* comm, std::size_t messages, std::size_t longest, void* held) {
            functions_of_communicator<Comm, Space>::of(comm).reserve(messages, longest, of(held));
          })};
};

/// Whether the communicator's shared memory can hold gradients of the space, or any address will do.
template <class Comm, class Space>
constexpr bool shares_gradients = [] {
  if constexpr (shared_memory_communicator<Comm>)
    return !device_space<Space> || decltype(std::declval<const Comm&>().share(std::size_t{}))::same_address_space;
  else
    return false;
}();

template <class Comm>
struct functions_of_sharing {
  using window = decltype(std::declval<const Comm&>().share(std::size_t{}));

  static any_window share(const void* comm, std::size_t bytes) {
    auto shared = static_cast<const Comm*>(comm)->share(bytes);
    if constexpr (std::same_as<window, any_window>)  // that of an any_communicator
      return shared;
    else
      return any_window(std::move(shared), bytes, window::same_address_space);
  }

  static bool can_share(const void* comm) { return own_sharing<Comm>::can_share(*static_cast<const Comm*>(comm)); }

  static constexpr sharing_table table{&share, &can_share, window::same_address_space};
};

template <class Comm, class Space>
inline constexpr const posting_table* posting_of = nullptr;
template <class Comm, class Space>
requires posting_communicator<Comm, Space>
inline constexpr const posting_table* posting_of<Comm, Space> = &functions_of_posting<Comm, Space>::table;

template <class Comm, class Space>
inline constexpr const sharing_table* sharing_of = nullptr;
template <class Comm, class Space>
requires shares_gradients<Comm, Space>
inline constexpr const sharing_table* sharing_of<Comm, Space> = &functions_of_sharing<Comm>::table;

/// Neither const, so that no linker takes the tables of two types for one, since plans are told apart by them; nor inline, so
/// that they can be compiled elsewhere.
template <class Comm, class Space, class Functions = functions_of_communicator<Comm, Space>>
communicator_table table_of_communicator{
    .exchange = &Functions::exchange,
    .reserve = entry_if<reserves_messages<Comm>, decltype(communicator_table::reserve)>(
        [](const auto* comm, std::size_t messages, std::size_t longest) {
          Functions::of(comm).reserve(messages, longest);
        }),
    .note_activity = own_activity<Comm>::note,
    .nodes = entry_if<says_nodes<Comm>, decltype(communicator_table::nodes)>([](const auto* comm) {
      const auto& found = Functions::of(comm).nodes();
      const std::span<const int> all(found);
      return std::vector<int>(all.begin(), all.end());
    }),
    .copy = [](const void* comm) { return own(Comm(Functions::of(comm))); },
    .posting = posting_of<Comm, Space>,
    .sharing = sharing_of<Comm, Space>};

template <class Space, class Comm>
communicator_ref ref_to_communicator(const Space& space, const Comm& comm) {
  refuse_members_of_communicator<Comm>();
  const int rank = comm.rank();  // says so if the communicator is empty
  return {table_of_communicator<Comm, Space>, &comm, state_of(comm), &space, rank, comm.size()};
}

}  // namespace adasum::detail
