// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <any>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/attempt.hpp"
#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/message.hpp"
#include "room_to_share.hpp"
#include "staging.hpp"

namespace adasum {

/// An MPI call failed.
class mpi_error : public communication_error {
 public:
  mpi_error(const char* call, int code) : communication_error(describe(call, code)), call_(call), code_(code) {}

  /// The name of the function that failed, such as "MPI_Comm_dup".
  const char* call() const { return call_; }
  /// The error code that it returned.
  int code() const { return code_; }

 private:
  static std::string describe(const char* call, int code) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
    return std::string("adasum: ") + call + " failed: " + std::string(text.data(), static_cast<std::size_t>(length));
  }

  const char* call_;
  int code_;
};

/// How elements in memory of a device travel (execution spaces that are device_space).
enum class device_messages {
  automatic,  ///< direct if the MPI library says that it can (MPIX_Query_cuda_support, MPIX_GPU_query_support)
  direct,     ///< MPI is given addresses of the device
  staged,     ///< by way of pinned memory of the host, in pieces: while one travels the next is copied
};

/// The ranks of an MPI communicator. It is duplicated once, so that no message of this library meets one of the
/// caller's, and errors come back as exceptions whatever error handler the caller's communicator has. Copies share the
/// duplicate, which is freed with the last of them, unless MPI has been finalised by then.
///
/// As with any MPI communicator, all ranks make the same collective calls in the same order, from one thread at a time.
class mpi_communicator {
 public:
  /// Messages are cut into pieces of at most so many bytes: MPI counts in int.
  static constexpr std::size_t default_piece_limit = std::size_t{1} << 30;

  /// Collective over `comm`; blocks as MPI_Comm_dup does. All ranks give the same piece_limit.
  /// @throws bad_input  MPI is not initialised or already finalised; a null or inter-communicator
  /// @throws mpi_error  naming the call that failed
  explicit mpi_communicator(MPI_Comm comm, std::size_t piece_limit = default_piece_limit,
                            device_messages device = device_messages::automatic)
      : state_(std::make_shared<state>(comm, piece_limit)) {
    state_->stages = device == device_messages::staged || (device == device_messages::automatic && !is_gpu_aware());
  }

  /// Whether the MPI library says that it can send from memory of CUDA devices. @pre MPI is initialised
  static bool is_gpu_aware() {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
    return MPIX_Query_cuda_support() == 1;
#elif defined(MPIX_GPU_SUPPORT_CUDA)
    int supported = 0;
    return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &supported) == MPI_SUCCESS && supported;
#else
    return false;
#endif
  }

  int rank() const { return state_->rank; }
  int size() const { return state_->size; }
  /// The duplicate that carries the messages.
  MPI_Comm native() const { return state_->comm; }

  /// Memory that the ranks of one node share (an MPI window); see the concept shared_memory. Freed with this object,
  /// which is collective over the node's ranks, as MPI_Win_free is.
  class memory {
   public:
    static constexpr bool every_address = false;
    std::span<const int> ranks() const;
    std::byte* of(std::size_t place) const;
    bool alive() const { return !finalised(); }
    /// Lets messages move, the program's own too, while a rank waits for others in shared memory.
    void progress() const;

   private:
    friend mpi_communicator;
    struct window;
    std::shared_ptr<window> window_;
  };

  /// Collective; blocks as MPI_Win_allocate_shared does.
  /// @throws shared_memory_error  on all ranks: on one node, /dev/shm has no room (or where Open MPI was told to keep
  ///                              such memory, osc_sm_backing_directory), or MPI gave an error
  memory share(std::size_t bytes) const;

  /// Whether all ranks share memory with each other. Collective the first time, as share() and nodes() are. @throws
  /// mpi_error
  bool all_share_memory() const { return state_->node_of()->ranks.size() == static_cast<std::size_t>(size()); }

  /// For schedules::hierarchical: the node of each rank, as the lowest rank that it shares memory with
  /// (MPI_COMM_TYPE_SHARED). Collective. @throws mpi_error
  std::vector<int> nodes() const {
    std::vector<int> lowest(static_cast<std::size_t>(size()));
    const int mine = state_->node_of()->ranks.front();
    check("MPI_Allgather", MPI_Allgather(&mine, 1, MPI_INT, lowest.data(), 1, MPI_INT, state_->comm));
    return lowest;
  }

 private:
  struct state;

 public:
  /// An exchange in flight; see the concept pending_exchange. Messages move while MPI is called: in test() and wait().
  class pending {
   public:
    bool test() {
      int ended = 0;
      const int code = MPI_Testall(count(), requests_.data(), &ended, statuses_.data());
      if (code == MPI_SUCCESS && !ended) return false;
      require_complete("MPI_Testall", code);
      return true;
    }
    void wait() { require_complete("MPI_Waitall", MPI_Waitall(count(), requests_.data(), statuses_.data())); }

   private:
    friend mpi_communicator;
    struct expectation {
      int peer;
      int bytes;
      std::byte* at;
      int arrived;  ///< bytes; -1: not yet known
    };

    void begin(const state& on);
    void receive(int peer, std::span<std::byte> room, std::size_t piece_limit);
    void send(int peer, std::span<const std::byte> message, std::size_t piece_limit, bool withheld);
    void posted() { statuses_.resize(requests_.size()); }
    template <class Visitor>
    void for_each_arrival(Visitor&& visit);
    void require_complete(const char* call, int code) const;
    int count() const { return static_cast<int>(requests_.size()); }

    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0;
    const char* call_ = "";  // the call that failed when the messages were posted, if one did
    int code_ = MPI_SUCCESS;
    // Kept from one exchange to the next, so that none allocates once they have grown to its size.
    std::vector<MPI_Request> requests_;
    std::vector<MPI_Status> statuses_;
    std::vector<expectation> expected_;
  };

  /// Blocks until every message has been sent and received. See the concept communicator_for. The stream of a device is
  /// waited for before its memory is sent; what has arrived in staging is copied to the device in the order of the
  /// stream.
  template <class Space>
  void exchange(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const {
    if constexpr (device_space<Space>) {
      exchange_with_device(space, out, in);
    } else {
      post(space, out, in, state_->blocking);
      state_->blocking.wait();
    }
  }

  /// The same without blocking; not for memory of devices. See the concept posting_communicator.
  template <class Space>
    requires(!device_space<Space>)
  void post(const Space&, std::span<const outgoing> out, std::span<const incoming> in, pending& exchange) const {
    exchange.begin(*state_);
    for (const auto& room : in) exchange.receive(room.peer, room.bytes, state_->piece_limit);
    for (const auto& message : out) exchange.send(message.peer, message.bytes, state_->piece_limit, message.withheld);
    exchange.posted();
  }

 private:
  template <class Space>
  void exchange_with_device(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const;

  static void check(const char* call, int code) {
    if (code != MPI_SUCCESS) throw mpi_error(call, code);
  }

  struct node_communicator;

  struct state {
    state(MPI_Comm original, std::size_t limit) : piece_limit(limit) {
      int flag = 0;
      check("MPI_Initialized", MPI_Initialized(&flag));
      if (!flag) throw bad_input("adasum::mpi_communicator: MPI is not initialised (call MPI_Init first)");
      check("MPI_Finalized", MPI_Finalized(&flag));
      if (flag) throw bad_input("adasum::mpi_communicator: MPI is already finalised");
      if (original == MPI_COMM_NULL) throw bad_input("adasum::mpi_communicator: the communicator is MPI_COMM_NULL");
      check("MPI_Comm_test_inter", MPI_Comm_test_inter(original, &flag));
      if (flag) throw bad_input("adasum::mpi_communicator: the communicator is an inter-communicator");
      if (piece_limit == 0 || piece_limit > default_piece_limit)
        throw bad_input("adasum::mpi_communicator: pieces of " + std::to_string(piece_limit) + " bytes; 1 to " +
                        std::to_string(default_piece_limit) + " are possible");
      check("MPI_Comm_dup", MPI_Comm_dup(original, &comm));
      check("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
      check("MPI_Comm_rank", MPI_Comm_rank(comm, &rank));
      check("MPI_Comm_size", MPI_Comm_size(comm, &size));
    }
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
      if (comm != MPI_COMM_NULL && !finalised()) MPI_Comm_free(&comm);
    }

    /// Made once: MPI has few communicators.
    const std::shared_ptr<const node_communicator>& node_of() {
      if (!node) node = std::make_shared<const node_communicator>(*this);
      return node;
    }

    std::size_t piece_limit;
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0;
    int size = 0;
    std::shared_ptr<const node_communicator> node;
    pending blocking;                // the exchange of exchange(), kept for its memory
    bool stages = true;              // whether elements of devices go through the host
    std::any device_rooms;           // the staging of the kind of device in use
    std::vector<std::byte> nowhere;  // for what is discarded

    template <class Space>
    staging<Space>& staging_for() {
      using kind = std::shared_ptr<staging<Space>>;
      if (auto* const known = std::any_cast<kind>(&device_rooms)) return **known;
      return *device_rooms.emplace<kind>(std::make_shared<staging<Space>>());
    }
  };

  /// The ranks that share memory with this one.
  struct node_communicator {
    explicit node_communicator(const state& whole) {
      check("MPI_Comm_split_type",
            MPI_Comm_split_type(whole.comm, MPI_COMM_TYPE_SHARED, whole.rank, MPI_INFO_NULL, &comm));
      check("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
      int size = 0;
      check("MPI_Comm_size", MPI_Comm_size(comm, &size));
      ranks.resize(static_cast<std::size_t>(size));
      check("MPI_Allgather", MPI_Allgather(&whole.rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, comm));
    }
    node_communicator(const node_communicator&) = delete;
    node_communicator& operator=(const node_communicator&) = delete;
    ~node_communicator() {
      if (!finalised() && comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
    }

    MPI_Comm comm = MPI_COMM_NULL;
    std::vector<int> ranks;  // of the whole communicator, ascending
  };

  static bool finalised() {
    int flag = 0;
    return MPI_Finalized(&flag) != MPI_SUCCESS || flag;
  }

  std::shared_ptr<state> state_;
};

namespace detail {

/// Pieces of a message, as long as MPI's int allows or as copies overlap; an empty message is one piece. MPI keeps
/// their order.
template <class Byte, class Visitor>
void for_each_piece(std::span<Byte> bytes, std::size_t limit, Visitor&& visit) {
  std::size_t done = 0;
  do {
    const auto size = std::min(limit, bytes.size() - done);
    visit(bytes.data() + done, static_cast<int>(size));
    done += size;
  } while (done < bytes.size());
}

}  // namespace detail

/// Receives are posted first: they stand first among the requests.
inline void mpi_communicator::pending::begin(const state& on) {
  comm_ = on.comm;
  rank_ = on.rank;
  code_ = MPI_SUCCESS;
  requests_.clear();
  expected_.clear();
}

inline void mpi_communicator::pending::receive(int peer, std::span<std::byte> room, std::size_t piece_limit) {
  detail::for_each_piece(room, piece_limit, [&](std::byte* at, int bytes) {
    if (code_ != MPI_SUCCESS) return;
    call_ = "MPI_Irecv";
    requests_.push_back(MPI_REQUEST_NULL);
    expected_.push_back({peer, bytes, at, -1});
    code_ = MPI_Irecv(at, bytes, MPI_BYTE, peer, 0, comm_, &requests_.back());
  });
}

inline void mpi_communicator::pending::send(int peer, std::span<const std::byte> message, std::size_t piece_limit,
                                            bool withheld) {
  detail::for_each_piece(message, piece_limit, [&](const std::byte* at, int bytes) {
    if (code_ != MPI_SUCCESS) return;
    call_ = "MPI_Isend";
    requests_.push_back(MPI_REQUEST_NULL);
    code_ = MPI_Isend(at, withheld ? 0 : bytes, MPI_BYTE, peer, 0, comm_, &requests_.back());
  });
}

/// visit(piece) for each that has come whole, as they come; blocks until all have.
template <class Visitor>
void mpi_communicator::pending::for_each_arrival(Visitor&& visit) {
  for (std::size_t left = expected_.size(); left > 0 && code_ == MPI_SUCCESS; --left) {
    int which = MPI_UNDEFINED;
    MPI_Status status;
    call_ = "MPI_Waitany";
    code_ = MPI_Waitany(static_cast<int>(expected_.size()), requests_.data(), &which, &status);
    if (code_ != MPI_SUCCESS) return;
    auto& piece = expected_[static_cast<std::size_t>(which)];
    call_ = "MPI_Get_count";
    code_ = MPI_Get_count(&status, MPI_BYTE, &piece.arrived);
    if (piece.arrived == piece.bytes) visit(piece);
  }
}

/// @param call  what ended the exchange, with what code
inline void mpi_communicator::pending::require_complete(const char* call, int code) const {
  check(call_, code_);
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (code == MPI_ERR_IN_STATUS && statuses_[i].MPI_ERROR != MPI_SUCCESS && statuses_[i].MPI_ERROR != MPI_ERR_PENDING)
      throw mpi_error(call, statuses_[i].MPI_ERROR);
    if (i >= expected_.size()) continue;
    int bytes = expected_[i].arrived;  // of for_each_arrival
    if (bytes < 0) check("MPI_Get_count", MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes));
    if (bytes != expected_[i].bytes)
      throw communication_error("adasum::mpi_communicator: rank " + std::to_string(rank_) + ": rank " +
                                std::to_string(expected_[i].peer) + " sent " + std::to_string(bytes) + " bytes where " +
                                std::to_string(expected_[i].bytes) + " were expected");
  }
  check(call, code);
}

/// A copy that fails must leave no peer waiting: what cannot be sent is withheld, and the failure reported in the end.
template <class Space>
void mpi_communicator::exchange_with_device(const Space& space, std::span<const outgoing> out,
                                            std::span<const incoming> in) const {
  const auto on_device = [](const auto& message) { return message.where == residence::space; };
  // The same pieces on all ranks, also where some stage and others need not.
  const auto limit = [&](const auto& message) {
    return on_device(message) ? std::min(state_->piece_limit, staging<Space>::piece_bytes) : state_->piece_limit;
  };
  auto& messages = state_->blocking;
  auto& nowhere = state_->nowhere;
  detail::attempt run;
  if (!state_->stages && (std::ranges::any_of(out, on_device) || std::ranges::any_of(in, on_device)))
    run([&] { space.fence(); });
  auto& rooms = state_->template staging_for<Space>();
  if (state_->stages) run([&] { rooms.begin(space, out, in); });
  const auto withheld = [&](const outgoing& message) {
    return message.withheld || (on_device(message) && run.failed());
  };

  std::size_t longest = 0;
  for (const auto& room : in) longest = std::max(longest, on_device(room) ? room.bytes.size() : 0);
  if (run.failed() || std::ranges::any_of(in, &incoming::discarded)) nowhere.resize(longest);
  messages.begin(*state_);
  for (const auto& room : in)
    messages.receive(room.peer,
                     !on_device(room)                 ? room.bytes
                     : room.discarded || run.failed() ? std::span(nowhere).first(room.bytes.size())
                     : state_->stages                 ? rooms.room_for(room.bytes)
                                                      : room.bytes,
                     limit(room));
  if (state_->stages)
    for (const auto& message : out)
      if (on_device(message) && !message.withheld)
        run([&] { rooms.start_download(space, message.bytes, limit(message)); });
  for (const auto& message : out) {
    if (!on_device(message) || !state_->stages || withheld(message)) {
      messages.send(message.peer, message.bytes, limit(message), withheld(message));
      continue;
    }
    detail::for_each_piece(rooms.next_download(), limit(message), [&](const std::byte* at, int bytes) {
      run([&] { rooms.wait_for_piece(); });
      messages.send(message.peer, {at, static_cast<std::size_t>(bytes)}, state_->piece_limit, run.failed());
    });
  }
  messages.posted();
  if (state_->stages) {
    messages.for_each_arrival(
        [&](const auto& piece) { run([&] { rooms.upload(space, piece.at, static_cast<std::size_t>(piece.bytes)); }); });
    run([&] { rooms.end(space); });
  }
  messages.wait();
  run.rethrow();
}

struct mpi_communicator::memory::window {
  window(state& whole, std::size_t bytes) : node(whole.node_of()), ranks(node->ranks) {
    // Whole cache lines, and one more: MPI promises no alignment.
    const auto stride = (bytes + 63) / 64 * 64 + 64;
    require_room(whole, stride);
    void* mine = nullptr;
    const int code =
        MPI_Win_allocate_shared(static_cast<MPI_Aint>(stride), 1, MPI_INFO_NULL, node->comm, &mine, &handle);
    if (!on_all(code == MPI_SUCCESS, whole.comm)) {
      // To free it is collective: where only some ranks of the node have it, they lose it.
      if (on_all(code == MPI_SUCCESS, node->comm)) MPI_Win_free(&handle);
      give_up(code == MPI_SUCCESS ? std::string("another rank could not make it")
                                  : mpi_error("MPI_Win_allocate_shared", code).what());
    }
    std::memset(mine, 0, stride);
    for (int place = 0; place < static_cast<int>(ranks.size()); ++place) {
      MPI_Aint size = 0;
      int unit = 0;
      void* base = nullptr;
      check("MPI_Win_shared_query", MPI_Win_shared_query(handle, place, &size, &unit, &base));
      bases.push_back(static_cast<std::byte*>(base));
    }
    // One shift for all ranks, so that offsets mean the same to each: a page begins at the same place for everyone.
    for (auto& base : bases) base += (64 - reinterpret_cast<std::uintptr_t>(base) % 64) % 64;
    check("MPI_Win_lock_all", MPI_Win_lock_all(MPI_MODE_NOCHECK, handle));  // loads and stores from now on
    check("MPI_Win_sync", MPI_Win_sync(handle));
    check("MPI_Barrier", MPI_Barrier(node->comm));  // everyone's memory is zero now
  }
  window(const window&) = delete;
  window& operator=(const window&) = delete;
  ~window() {
    if (finalised() || handle == MPI_WIN_NULL) return;
    MPI_Win_unlock_all(handle);
    MPI_Win_free(&handle);
  }

  /// Asked before MPI is: one that finds no room may return an error on one rank and let the others wait.
  void require_room(const state& whole, std::size_t stride) const {
    const std::uint64_t mine =
        ranks.size() > 1 ? stride + 4096 : 0;  // to whole pages; alone, it is a rank's own memory
    std::uint64_t wanted = 0;
    check("MPI_Allreduce", MPI_Allreduce(&mine, &wanted, 1, MPI_UINT64_T, MPI_SUM, node->comm));
    const detail::room_to_share room;
    const bool fits = wanted <= room.bytes;
    if (on_all(fits, whole.comm)) return;
    give_up(fits ? "there is no room on another node"
                 : room.directory + " has room for " + std::to_string(room.bytes) +
                       " bytes; the ranks of this node want " + std::to_string(wanted));
  }
  static bool on_all(bool good, MPI_Comm comm) {
    int all_good = good;
    check("MPI_Allreduce", MPI_Allreduce(MPI_IN_PLACE, &all_good, 1, MPI_INT, MPI_MIN, comm));
    return all_good;
  }
  [[noreturn]] static void give_up(const std::string& why) {
    throw shared_memory_error("adasum::mpi_communicator: memory cannot be shared: " + why);
  }

  std::shared_ptr<const node_communicator> node;
  std::span<const int> ranks;
  MPI_Win handle = MPI_WIN_NULL;
  std::vector<std::byte*> bases;
};

inline std::span<const int> mpi_communicator::memory::ranks() const { return window_->ranks; }
inline void mpi_communicator::memory::progress() const {
  int is_there = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, window_->node->comm, &is_there, MPI_STATUS_IGNORE);
}
inline std::byte* mpi_communicator::memory::of(std::size_t place) const { return window_->bases[place]; }

inline mpi_communicator::memory mpi_communicator::share(std::size_t bytes) const {
  memory shared;
  shared.window_ = std::make_shared<memory::window>(*state_, bytes);
  return shared;
}

}  // namespace adasum
