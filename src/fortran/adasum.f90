! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
!
! use adasum: the library for Fortran programs that use mpi_f08. docs/c_and_fortran.md is a short introduction; what the calls
! do is said in include/adasum/adasum.h, whose functions these are.
!
! Arrays are real(real32) or real(real64), of any rank; `lengths` are those of their segments, one for each layer; without them,
! the array is one segment. Rules and options are texts: rule="centred_clipping:radius=2", options="nonfinite=exclude".
!
! `ierror` is adasum_success, or says what went wrong; adasum_last_error() has the message. A call without `ierror` that fails
! ends the program with that message, as MPI does.
!
! Ranks count from 0, as in MPI; segments count from 1, as `lengths` does.
module adasum
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real32, real64
  use mpi_f08, only: MPI_Comm
  use adasum_c
  use adasum_reports
  implicit none
  private

  type, public :: adasum_plan
    private
    type(handle) :: plan
    integer(c_size_t) :: count = 0
  end type adasum_plan

  public :: adasum_report, adasum_success, adasum_bad_input, adasum_agreement_error, adasum_nonfinite_error
  public :: adasum_shared_memory_error, adasum_communication_error, adasum_timeout_error, adasum_mpi_error
  public :: adasum_out_of_memory, adasum_other_error
  public :: adasum_version, adasum_rules, adasum_error_name, adasum_last_error, adasum_pair, adasum_combine
  public :: adasum_allreduce, adasum_set_timeout
  public :: adasum_plan_create, adasum_plan_run, adasum_plan_start, adasum_plan_test, adasum_plan_wait, adasum_plan_buffer
  public :: adasum_plan_free
  public :: adasum_report_contributions, adasum_report_segments, adasum_report_rule, adasum_report_schedule
  public :: adasum_report_orthogonality, adasum_report_norm, adasum_report_weight, adasum_report_result_norm
  public :: adasum_report_finite, adasum_report_excluded, adasum_report_json, adasum_report_free

  ! out = the adaptive sum of a and b, which are of one shape.
  interface adasum_pair
    module procedure pair_real32, pair_real64
  end interface adasum_pair
  ! out = the combination of the columns of `gradients` under a rule.
  interface adasum_combine
    module procedure combine_real32, combine_real64
  end interface adasum_combine
  ! Combines the arrays of all ranks in place: adasum_allreduce(data, comm, lengths, rule, options, report, ierror).
  interface adasum_allreduce
    module procedure allreduce_real32, allreduce_real64
  end interface adasum_allreduce
  ! A plan for arrays like `mold`: adasum_plan_create(mold, comm, plan, lengths, rule, options, ierror).
  interface adasum_plan_create
    module procedure plan_create_real32, plan_create_real64
  end interface adasum_plan_create
  ! Reduces data in place: adasum_plan_run(plan, data, report, ierror).
  interface adasum_plan_run
    module procedure plan_run_real32, plan_run_real64
  end interface adasum_plan_run
  ! Begins such a run; data are contiguous, asynchronous, and not touched before adasum_plan_wait(plan, report, ierror).
  interface adasum_plan_start
    module procedure plan_start_real32, plan_start_real64
  end interface adasum_plan_start
  ! Memory of the plan, of rank 1. Collective the first time.
  interface adasum_plan_buffer
    module procedure plan_buffer_real32, plan_buffer_real64
  end interface adasum_plan_buffer

  integer(c_int), parameter :: c_double_type = 1, c_float_type = 2

  ! Made by understand(): what C is given for the optional arguments.
  type :: arguments
    character(kind=c_char), allocatable :: rule(:), options(:)
    integer(c_int64_t), allocatable :: lengths(:)
    type(c_ptr) :: c_rule = c_null_ptr, c_options = c_null_ptr, c_lengths = c_null_ptr
    integer(c_size_t) :: segments = 0
  end type arguments

contains

  subroutine pair_real32(a, b, out, lengths, ierror)
    real(real32), intent(in), contiguous, target :: a(..), b(..)
    real(real32), intent(inout), contiguous, target :: out(..)
    integer, intent(in), optional :: lengths(:)
    integer, intent(out), optional :: ierror
    type(arguments), target :: given
    call understand(given, lengths)
    call finish(c_pair(c_loc(a), size(a, kind=c_size_t), c_loc(b), size(b, kind=c_size_t), c_loc(out), &
                       size(out, kind=c_size_t), c_float_type, given%c_lengths, given%segments), ierror)
  end subroutine pair_real32

  subroutine combine_real32(gradients, out, lengths, rule, options, report, ierror)
    real(real32), intent(in), contiguous, target :: gradients(:, :)
    real(real32), intent(inout), contiguous, target :: out(:)
    integer, intent(in), optional :: lengths(:)
    character(*), intent(in), optional :: rule, options
    type(adasum_report), intent(inout), optional, target :: report
    integer, intent(out), optional :: ierror
    type(arguments), target :: given
    type(c_ptr), target :: columns(size(gradients, 2))
    integer :: i
    call understand(given, lengths, rule, options)
    do i = 1, size(columns)
      columns(i) = c_loc(gradients(1, i))
    end do
    call finish(c_combine(c_loc(columns), size(columns, kind=c_size_t), size(gradients, 1, kind=c_size_t), c_loc(out), &
                          size(out, kind=c_size_t), c_float_type, given%c_lengths, given%segments, given%c_rule, &
                          given%c_options, address(report)), ierror)
  end subroutine combine_real32

  subroutine allreduce_real32(data, comm, lengths, rule, options, report, ierror)
    real(real32), intent(inout), contiguous, target :: data(..)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in), optional :: lengths(:)
    character(*), intent(in), optional :: rule, options
    type(adasum_report), intent(inout), optional, target :: report
    integer, intent(out), optional :: ierror
    type(arguments), target :: given
    call understand(given, lengths, rule, options)
    call finish(c_allreduce(int(comm%MPI_VAL, c_int), c_loc(data), size(data, kind=c_size_t), c_float_type, given%c_lengths, &
                            given%segments, given%c_rule, given%c_options, address(report)), ierror)
  end subroutine allreduce_real32

  subroutine plan_create_real32(mold, comm, plan, lengths, rule, options, ierror)
    real(real32), intent(in) :: mold(..)
    type(MPI_Comm), intent(in) :: comm
    type(adasum_plan), intent(inout) :: plan
    integer, intent(in), optional :: lengths(:)
    character(*), intent(in), optional :: rule, options
    integer, intent(out), optional :: ierror
    type(arguments), target :: given
    call understand(given, lengths, rule, options)
    plan%count = size(mold, kind=c_size_t)
    call finish(c_plan_create(int(comm%MPI_VAL, c_int), plan%count, c_float_type, given%c_lengths, given%segments, &
                              given%c_rule, given%c_options, plan%plan), ierror)
  end subroutine plan_create_real32

  subroutine plan_run_real32(plan, data, report, ierror)
    type(adasum_plan), intent(in) :: plan
    real(real32), intent(inout), contiguous, target :: data(..)
    type(adasum_report), intent(inout), optional, target :: report
    integer, intent(out), optional :: ierror
    call finish(c_plan_run(plan%plan, c_loc(data), size(data, kind=c_size_t), c_float_type, address(report)), ierror)
  end subroutine plan_run_real32

  ! Not declared contiguous: a copy that the compiler makes would be gone before the reduction ends.
  subroutine plan_start_real32(plan, data, ierror)
    type(adasum_plan), intent(in) :: plan
    real(real32), intent(inout), asynchronous, target :: data(..)
    integer, intent(out), optional :: ierror
    type(c_ptr) :: first
    first = c_null_ptr
    if (is_contiguous(data)) first = c_loc(data)
    call finish(c_plan_start(plan%plan, first, size(data, kind=c_size_t), c_float_type, &
                             merge(1_c_int, 0_c_int, is_contiguous(data))), ierror)
  end subroutine plan_start_real32

  subroutine plan_buffer_real32(plan, buffer, ierror)
    type(adasum_plan), intent(in) :: plan
    real(real32), pointer, contiguous, intent(out) :: buffer(:)
    integer, intent(out), optional :: ierror
    type(c_ptr) :: memory
    integer :: error
    nullify (buffer)
    error = c_plan_buffer(plan%plan, c_float_type, memory)
    if (error == adasum_success) call c_f_pointer(memory, buffer, [plan%count])
    call finish(error, ierror)
  end subroutine plan_buffer_real32

  subroutine pair_real64(a, b, out, lengths, ierror)
    real(real64), intent(in), contiguous, target :: a(..), b(..)
    real(real64), intent(inout), contiguous, target :: out(..)
    integer, intent(in), optional :: lengths(:)
    integer, intent(out), optional :: ierror
    type(arguments), target :: given
    call understand(given, lengths)
    call finish(c_pair(c_loc(a), size(a, kind=c_size_t), c_loc(b), size(b, kind=c_size_t), c_loc(out), &
                       size(out, kind=c_size_t), c_double_type, given%c_lengths, given%segments), ierror)
  end subroutine pair_real64

  subroutine combine_real64(gradients, out, lengths, rule, options, report, ierror)
    real(real64), intent(in), contiguous, target :: gradients(:, :)
    real(real64), intent(inout), contiguous, target :: out(:)
    integer, intent(in), optional :: lengths(:)
    character(*), intent(in), optional :: rule, options
    type(adasum_report), intent(inout), optional, target :: report
    integer, intent(out), optional :: ierror
    type(arguments), target :: given
    type(c_ptr), target :: columns(size(gradients, 2))
    integer :: i
    call understand(given, lengths, rule, options)
    do i = 1, size(columns)
      columns(i) = c_loc(gradients(1, i))
    end do
    call finish(c_combine(c_loc(columns), size(columns, kind=c_size_t), size(gradients, 1, kind=c_size_t), c_loc(out), &
                          size(out, kind=c_size_t), c_double_type, given%c_lengths, given%segments, given%c_rule, &
                          given%c_options, address(report)), ierror)
  end subroutine combine_real64

  subroutine allreduce_real64(data, comm, lengths, rule, options, report, ierror)
    real(real64), intent(inout), contiguous, target :: data(..)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in), optional :: lengths(:)
    character(*), intent(in), optional :: rule, options
    type(adasum_report), intent(inout), optional, target :: report
    integer, intent(out), optional :: ierror
    type(arguments), target :: given
    call understand(given, lengths, rule, options)
    call finish(c_allreduce(int(comm%MPI_VAL, c_int), c_loc(data), size(data, kind=c_size_t), c_double_type, given%c_lengths, &
                            given%segments, given%c_rule, given%c_options, address(report)), ierror)
  end subroutine allreduce_real64

  subroutine plan_create_real64(mold, comm, plan, lengths, rule, options, ierror)
    real(real64), intent(in) :: mold(..)
    type(MPI_Comm), intent(in) :: comm
    type(adasum_plan), intent(inout) :: plan
    integer, intent(in), optional :: lengths(:)
    character(*), intent(in), optional :: rule, options
    integer, intent(out), optional :: ierror
    type(arguments), target :: given
    call understand(given, lengths, rule, options)
    plan%count = size(mold, kind=c_size_t)
    call finish(c_plan_create(int(comm%MPI_VAL, c_int), plan%count, c_double_type, given%c_lengths, given%segments, &
                              given%c_rule, given%c_options, plan%plan), ierror)
  end subroutine plan_create_real64

  subroutine plan_run_real64(plan, data, report, ierror)
    type(adasum_plan), intent(in) :: plan
    real(real64), intent(inout), contiguous, target :: data(..)
    type(adasum_report), intent(inout), optional, target :: report
    integer, intent(out), optional :: ierror
    call finish(c_plan_run(plan%plan, c_loc(data), size(data, kind=c_size_t), c_double_type, address(report)), ierror)
  end subroutine plan_run_real64

  ! Not declared contiguous: a copy that the compiler makes would be gone before the reduction ends.
  subroutine plan_start_real64(plan, data, ierror)
    type(adasum_plan), intent(in) :: plan
    real(real64), intent(inout), asynchronous, target :: data(..)
    integer, intent(out), optional :: ierror
    type(c_ptr) :: first
    first = c_null_ptr
    if (is_contiguous(data)) first = c_loc(data)
    call finish(c_plan_start(plan%plan, first, size(data, kind=c_size_t), c_double_type, &
                             merge(1_c_int, 0_c_int, is_contiguous(data))), ierror)
  end subroutine plan_start_real64

  subroutine plan_buffer_real64(plan, buffer, ierror)
    type(adasum_plan), intent(in) :: plan
    real(real64), pointer, contiguous, intent(out) :: buffer(:)
    integer, intent(out), optional :: ierror
    type(c_ptr) :: memory
    integer :: error
    nullify (buffer)
    error = c_plan_buffer(plan%plan, c_double_type, memory)
    if (error == adasum_success) call c_f_pointer(memory, buffer, [plan%count])
    call finish(error, ierror)
  end subroutine plan_buffer_real64

  subroutine adasum_set_timeout(comm, seconds, ierror)
    type(MPI_Comm), intent(in) :: comm
    real(real64), intent(in) :: seconds
    integer, intent(out), optional :: ierror
    call finish(c_set_timeout(int(comm%MPI_VAL, c_int), seconds), ierror)
  end subroutine adasum_set_timeout

  subroutine adasum_plan_test(plan, done, ierror)
    type(adasum_plan), intent(in) :: plan
    logical, intent(out) :: done
    integer, intent(out), optional :: ierror
    integer(c_int) :: flag
    integer :: error
    flag = 0
    error = c_plan_test(plan%plan, flag)
    done = flag /= 0
    call finish(error, ierror)
  end subroutine adasum_plan_test

  subroutine adasum_plan_wait(plan, report, ierror)
    type(adasum_plan), intent(in) :: plan
    type(adasum_report), intent(inout), optional, target :: report
    integer, intent(out), optional :: ierror
    call finish(c_plan_wait(plan%plan, address(report)), ierror)
  end subroutine adasum_plan_wait

  subroutine adasum_plan_free(plan, ierror)
    type(adasum_plan), intent(inout) :: plan
    integer, intent(out), optional :: ierror
    call finish(c_plan_free(plan%plan), ierror)
  end subroutine adasum_plan_free

  ! ── what the calls have in common ──

  subroutine understand(given, lengths, rule, options)
    type(arguments), target, intent(inout) :: given
    integer, intent(in), optional :: lengths(:)
    character(*), intent(in), optional :: rule, options
    call for_c(rule, given%rule, given%c_rule)
    call for_c(options, given%options, given%c_options)
    if (.not. present(lengths)) return
    given%segments = size(lengths, kind=c_size_t)
    given%lengths = int(lengths, c_int64_t)
    given%c_lengths = c_loc(given%lengths)
  end subroutine understand

  type(c_ptr) function address(report)
    type(adasum_report), intent(inout), optional, target :: report
    address = c_null_ptr
    if (present(report)) address = c_loc(report%id)
  end function address

end module adasum
