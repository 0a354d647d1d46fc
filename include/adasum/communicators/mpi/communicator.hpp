// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "../../core/communicator_state.hpp"
#include "../../core/concepts.hpp"
#include "../../core/error.hpp"
#include "../../core/message.hpp"
#include "../../detail/references/erased.hpp"
#include "staging.hpp"

namespace adasum {

namespace detail::mpi {
class node_memory;
class pending_messages;
struct state;
}  // namespace detail::mpi

/// How elements in memory of a device travel (for execution spaces that are a device_space).
enum class device_messages {
  automatic,  ///< device_pointers if the MPI library says that it can (MPIX_Query_cuda_support, MPIX_GPU_query_support)
  device_pointers,  ///< MPI is given addresses of the device
  staged,           ///< through pinned memory of the host, in pieces: while one travels, the next is copied
};

/// The ranks of an MPI communicator. The communicator is duplicated once, so that messages of this library never match
/// the caller's, and errors come back as exceptions whatever error handler the caller's communicator has. Copies of this
/// object share the duplicate, which is freed with the last of them unless MPI has been finalised by then.
///
/// As with any MPI communicator, all ranks make the same collective calls in the same order, from one thread at a time.
///
/// **Thread level.** A program with one thread needs no particular level (MPI_Init will do). MPI_THREAD_SINGLE and
/// MPI_THREAD_FUNNELED: use this object only from the thread that initialised MPI. MPI_THREAD_SERIALIZED: from any
/// thread, while no other thread calls MPI. MPI_THREAD_MULTIPLE: from any thread, even while others call MPI, with
/// communicators of their own. The first of these rules is checked, by the constructor and by each call that makes or
/// runs a plan: one from another thread throws a bad_input that names the level, before anything is sent. (The other
/// ranks may wait for it.) In a program without MPI_Init, whose communicators come from MPI sessions, the level is that
/// of the session, which MPI does not tell: nothing is checked then.
///
/// **Sessions.** MPI_Init need not have been called where `comm` was made from a session (MPI_Comm_create_from_group).
/// MPI_Session_finalize comes after the last copy of this object, and of the plans that use it, has been destroyed.
///
/// **Empty communicators.** A default-constructed one, one made from MPI_COMM_NULL (which MPI_Comm_split gives to ranks that
/// it leaves out), and one that was moved from have no ranks. They can be made before MPI_Init, copied, assigned to, and
/// tested (`if (comm)`); anything else throws bad_input.
class mpi_communicator {
 public:
  /// Longer messages are sent in pieces of at most this many bytes: MPI counts in int.
  static constexpr std::size_t default_piece_limit = std::size_t{1} << 30;

  /// An empty communicator.
  mpi_communicator() = default;

  /// Collective over `comm`; blocks as MPI_Comm_dup and MPI_Comm_split_type do. All ranks give the same piece_limit.
  /// MPI_COMM_NULL makes an empty communicator.
  /// @throws bad_input  MPI is not initialised, or already finalised, or may not be used from this thread;
  ///                    an inter-communicator; a piece_limit of 0, or above the default
  /// @throws mpi_error  naming the call that failed
  explicit mpi_communicator(MPI_Comm comm, std::size_t piece_limit = default_piece_limit,
                            device_messages device = device_messages::automatic);

  /// Whether this communicator has ranks, that is, is not empty.
  explicit operator bool() const noexcept { return state_ != nullptr; }

  /// The number of this rank, from 0.
  int rank() const;
  /// How many ranks there are.
  int size() const;
  /// The duplicate that carries the messages; MPI_COMM_NULL if this communicator is empty.
  MPI_Comm native() const;

  /// Whether this rank has waited in vain, plans of single calls (which are destroyed with the last copy of this object), and
  /// more; see the concept communicator_for.
  communicator_state& state() const;

  /// From now on, how long this rank waits for others at the most, at each step of a reduction, of making a plan, and
  /// of waiting in memory that ranks share; without a timeout, for ever. Local: ranks may have different ones. It must
  /// be longer than the time by which one rank's gradient may come after another's, and than any pause of a rank.
  /// (test() does not wait.)
  ///
  /// When the time is over, this rank throws a timeout_error, which says for which rank it waited and what it was doing.
  /// The other ranks that need this one throw theirs. After a wait in memory that ranks share, that is all. MPI cannot
  /// take messages back, so after a wait for one
  ///   - this communicator is of no use: every call throws a timeout_error at once;
  ///   - what plans own stays for good, even if they are destroyed; a gradient of the caller's must not be changed or
  ///     freed as long as other ranks may run: they may still read or write it;
  ///   - MPI_Finalize may never return: end the program by MPI_Abort.
  /// @throws bad_input  a timeout that is not positive
  void set_timeout(std::chrono::duration<double> timeout) const;
  /// The timeout that was set; infinite if none was.
  std::chrono::duration<double> timeout ADASUM_NO_MACRO() const;

#ifdef OMPI_HAVE_MPI_EXT_FTMPI
  /// Local: from now on, whoever waits on this communicator for another rank gets an error, and so does every later call on
  /// any rank. For programs that go on when a rank has died, with an MPI that can (Open MPI 5 and later);
  /// `examples/09_survivors.cpp` shows how.
  void revoke() const;
#endif

  /// Whether the MPI library says that it can send from memory of CUDA devices. @pre MPI is initialised
  static bool is_gpu_aware();

  /// Memory that the ranks of one node share; see the concept shared_window. A rank drops it when it likes.
  class memory {
   public:
    static constexpr bool same_address_space = false;
    std::span<const int> ranks() const;
    std::byte* of(std::size_t index) const;
    /// Lets messages move, the program's own too, while a rank waits for others in shared memory.
    /// @throws mpi_error  where MPI knows that one of them has died
    void progress() const;

   private:
    friend mpi_communicator;
    memory() = default;
    std::shared_ptr<const detail::mpi::node_memory> memory_;
  };

  /// Memory of so many bytes for each rank. Collective; blocks until all ranks have it.
  /// @throws shared_memory_error  on all ranks: on one node there is too little room in /dev/shm, or a rank ran out of
  ///                              memory
  memory share(std::size_t bytes) const;

  /// The node of each rank, named by the lowest of the ranks that share memory there (MPI_COMM_TYPE_SHARED): what
  /// schedules::hierarchical asks for, and schedules::automatic follows.
  const std::vector<int>& nodes() const;

  /// An exchange in flight; see the concept pending_exchange. Messages move while MPI is called: in test() and wait().
  class pending {
   public:
    bool test();
    void wait();

   private:
    friend mpi_communicator;
    detail::mpi::pending_messages& messages();
    detail::owned_object messages_ = detail::no_object();  // until it is used first
  };

  /// Blocks until every message has been sent and received. See the concept communicator_for. The stream of a device is
  /// waited for before its memory is sent; what has arrived in staging buffers is copied to the device in the order of
  /// the stream.
  template <class Space>
  void exchange(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const {
    if constexpr (device_space<Space>)
      exchange_with_device(&space, detail::mpi::device_of<Space>::make, out, in);
    else
      exchange_on_host(out, in);
  }

  /// Memory for exchanges of so many messages each way, of at most so many bytes each, by exchange() or by post() with
  /// this object: see the concept communicator_for. Not collective. @throws std::bad_alloc
  void reserve(std::size_t messages, std::size_t longest) const;
  void reserve(std::size_t messages, std::size_t longest, pending& exchange) const;

  /// The same without blocking; not for memory of devices. See the concept posting_communicator.
  template <class Space>
    requires(!device_space<Space>)
  void post(const Space&, std::span<const outgoing> out, std::span<const incoming> in, pending& exchange) const {
    post_on_host(out, in, exchange);
  }

 private:
  detail::mpi::state& get() const;

  void exchange_on_host(std::span<const outgoing> out, std::span<const incoming> in) const;
  void post_on_host(std::span<const outgoing> out, std::span<const incoming> in, pending& exchange) const;
  /// @param make  makes what an exchange needs of such a device; it is kept until there is one of another kind
  void exchange_with_device(const void* space, std::unique_ptr<detail::mpi::device> (*make)(),
                            std::span<const outgoing> out, std::span<const incoming> in) const;

  std::shared_ptr<detail::mpi::state> state_;
};

}  // namespace adasum

#if ADASUM_MPI_DEFINITIONS
#include "../../core/waiting.hpp"
#include "device_exchange.hpp"
#include "error.hpp"
#include "handle.hpp"
#include "node_memory.hpp"
#include "pending.hpp"
#include "state.hpp"

namespace adasum {

ADASUM_MPI_INLINE mpi_communicator::mpi_communicator(MPI_Comm comm, std::size_t piece_limit, device_messages device) {
  if (piece_limit == 0 || piece_limit > default_piece_limit)
    throw bad_input({"adasum::mpi_communicator: piece_limit is ", piece_limit, " bytes; it must be between 1 and ",
                     default_piece_limit});
  if (comm == MPI_COMM_NULL) return;
  detail::mpi::require_initialized(comm);
  const auto only = detail::mpi::permitted_thread();
  only.require("adasum::mpi_communicator");
  state_ =
      std::shared_ptr<detail::mpi::state>(new detail::mpi::state(comm, piece_limit, only), detail::mpi::state::destroy);
  state_->stages = device == device_messages::staged || (device == device_messages::automatic && !is_gpu_aware());
}

ADASUM_MPI_INLINE detail::mpi::state& mpi_communicator::get() const {
  if (!state_)
    throw bad_input(
        "adasum::mpi_communicator: this communicator is empty (MPI_COMM_NULL): it has no ranks to communicate with");
  return *state_;
}

ADASUM_MPI_INLINE int mpi_communicator::rank() const { return get().comm.rank(); }
ADASUM_MPI_INLINE int mpi_communicator::size() const { return get().comm.size(); }
ADASUM_MPI_INLINE MPI_Comm mpi_communicator::native() const { return state_ ? state_->comm.get() : MPI_COMM_NULL; }
ADASUM_MPI_INLINE communicator_state& mpi_communicator::state() const { return get().of_handles; }

ADASUM_MPI_INLINE void mpi_communicator::set_timeout(std::chrono::duration<double> timeout) const {
  detail::require_timeout(timeout, "adasum::mpi_communicator::set_timeout");
  state().set_timeout(timeout);
}
ADASUM_MPI_INLINE std::chrono::duration<double> mpi_communicator::timeout ADASUM_NO_MACRO() const {
  return (state().timeout)();
}

#ifdef OMPI_HAVE_MPI_EXT_FTMPI
ADASUM_MPI_INLINE void mpi_communicator::revoke() const {
  get().comm.revoke();
  get().node->comm().revoke();
}
#endif

ADASUM_MPI_INLINE bool mpi_communicator::is_gpu_aware() {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() == 1;
#elif defined(MPIX_GPU_SUPPORT_CUDA)
  int supported = 0;
  return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &supported) == MPI_SUCCESS && supported;
#else
  return false;
#endif
}

// ── memory that ranks share ──

ADASUM_MPI_INLINE std::span<const int> mpi_communicator::memory::ranks() const { return memory_->ranks(); }
ADASUM_MPI_INLINE std::byte* mpi_communicator::memory::of(std::size_t index) const { return memory_->of(index); }
ADASUM_MPI_INLINE void mpi_communicator::memory::progress() const {
  int is_there = 0;
  detail::mpi::check("MPI_Iprobe",
                     MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, memory_->comm(), &is_there, MPI_STATUS_IGNORE));
}

ADASUM_MPI_INLINE mpi_communicator::memory mpi_communicator::share(std::size_t bytes) const {
  auto& here = get();
  here.wait.require_not_given_up();
  memory made;
  made.memory_ = detail::mpi::node_memory::make(here.node, bytes, native(), here.wait);
  return made;
}
ADASUM_MPI_INLINE const std::vector<int>& mpi_communicator::nodes() const { return get().node->node_of_rank(); }

// ── messages ──

ADASUM_MPI_INLINE detail::mpi::pending_messages& mpi_communicator::pending::messages() {
  if (!messages_) messages_ = detail::own(detail::mpi::pending_messages());
  return *static_cast<detail::mpi::pending_messages*>(messages_.get());
}
ADASUM_MPI_INLINE bool mpi_communicator::pending::test() { return !messages_ || messages().test(); }
ADASUM_MPI_INLINE void mpi_communicator::pending::wait() {
  if (messages_) messages().wait();
}

ADASUM_MPI_INLINE void mpi_communicator::reserve(std::size_t messages, std::size_t longest) const {
  get().reserve(messages, longest, get().blocking);
}
ADASUM_MPI_INLINE void mpi_communicator::reserve(std::size_t messages, std::size_t longest, pending& exchange) const {
  get().reserve(messages, longest, exchange.messages());
}

ADASUM_MPI_INLINE void mpi_communicator::exchange_on_host(std::span<const outgoing> out,
                                                          std::span<const incoming> in) const {
  auto& here = get();
  here.post(out, in, here.blocking);
  here.blocking.wait();
}
ADASUM_MPI_INLINE void mpi_communicator::post_on_host(std::span<const outgoing> out, std::span<const incoming> in,
                                                      pending& exchange) const {
  get().post(out, in, exchange.messages());
}

ADASUM_MPI_INLINE void mpi_communicator::exchange_with_device(const void* space,
                                                              std::unique_ptr<detail::mpi::device> (*make)(),
                                                              std::span<const outgoing> out,
                                                              std::span<const incoming> in) const {
  auto& here = get();
  here.wait.require_not_given_up();
  if (here.buffers.make != make) {
    here.buffers.copies = std::make_unique<detail::mpi::staging>(make());
    here.buffers.make = make;
  }
  here.buffers.copies->device().use(space);
  detail::mpi::device_exchange(here.stages, here.piece_limit, here.blocking, here.buffers)
      .run(here.comm, here.wait, out, in);
}

}  // namespace adasum
#endif
