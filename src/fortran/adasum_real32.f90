! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
!
! The calls of the module `adasum` for arrays of real(real32); adasum_real64.f90 has the same for real(real64).
!
! An array that is not allocated, or a pointer without a target, is no argument of Fortran's, but compilers pass it: a null pointer,
! and a size that means nothing. C says what is wrong, to the other ranks too.
module adasum_real32
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real32
  use mpi_f08, only: MPI_Comm
  use adasum_c
  use adasum_reports
  implicit none
  private
  public :: adasum_pair, adasum_combine, adasum_allreduce
  public :: adasum_plan_create, adasum_plan_run, adasum_plan_start, adasum_plan_buffer

  ! out = the adaptive sum of a and b, which are of one shape.
  interface adasum_pair
    module procedure pair
  end interface adasum_pair
  ! out = the combination of the columns of `gradients` under a rule.
  interface adasum_combine
    module procedure combine
  end interface adasum_combine
  ! Combines the arrays of all ranks in place: adasum_allreduce(data, comm, lengths, rule, options, report, ierror).
  interface adasum_allreduce
    module procedure allreduce, allreduce_by_handle
  end interface adasum_allreduce
  ! A plan for arrays like `mold`: adasum_plan_create(mold, comm, plan, lengths, rule, options, ierror).
  interface adasum_plan_create
    module procedure plan_create, plan_create_by_handle
  end interface adasum_plan_create
  ! Reduces data in place: adasum_plan_run(plan, data, report, ierror).
  interface adasum_plan_run
    module procedure plan_run
  end interface adasum_plan_run
  ! Begins such a run; data are contiguous, asynchronous, and not touched before adasum_plan_wait(plan, report, ierror).
  interface adasum_plan_start
    module procedure plan_start
  end interface adasum_plan_start
  ! Memory of the plan, of rank 1. Collective the first time.
  interface adasum_plan_buffer
    module procedure plan_buffer
  end interface adasum_plan_buffer

  integer(c_int), parameter :: type = 2  ! of the elements, for C

contains

  subroutine pair(a, b, out, lengths, ierror)
    real(real32), intent(in), contiguous, target :: a(..), b(..)
    real(real32), intent(inout), contiguous, target :: out(..)
    class(*), intent(in), optional :: lengths(:)
    integer, intent(out), optional :: ierror
    type(arguments), target :: given
    call understand(given, lengths)
    call finish(c_pair(c_loc(a), size(a, kind=c_size_t), c_loc(b), size(b, kind=c_size_t), c_loc(out), &
                       size(out, kind=c_size_t), type, given%c_lengths, given%segments), ierror)
  end subroutine pair

  subroutine combine(gradients, out, lengths, rule, options, report, ierror)
    real(real32), intent(in), contiguous, target :: gradients(:, :)
    real(real32), intent(inout), contiguous, target :: out(:)
    class(*), intent(in), optional :: lengths(:)
    character(*), intent(in), optional :: rule, options
    type(adasum_report), intent(inout), optional, target :: report
    integer, intent(out), optional :: ierror
    type(arguments), target :: given
    call understand(given, lengths, rule, options)
    call finish(c_combine(c_loc(gradients), size(gradients, 2, kind=c_size_t), size(gradients, 1, kind=c_size_t), c_loc(out), &
                          size(out, kind=c_size_t), type, given%c_lengths, given%segments, given%c_rule, given%c_options, &
                          address(report)), ierror)
  end subroutine combine

  subroutine allreduce(data, comm, lengths, rule, options, report, ierror)
    real(real32), intent(inout), contiguous, target :: data(..)
    type(MPI_Comm), intent(in) :: comm
    class(*), intent(in), optional :: lengths(:)
    character(*), intent(in), optional :: rule, options
    type(adasum_report), intent(inout), optional, target :: report
    integer, intent(out), optional :: ierror
    call allreduce_by_handle(data, comm%MPI_VAL, lengths, rule, options, report, ierror)
  end subroutine allreduce

  subroutine allreduce_by_handle(data, comm, lengths, rule, options, report, ierror)
    real(real32), intent(inout), contiguous, target :: data(..)
    integer, intent(in) :: comm
    class(*), intent(in), optional :: lengths(:)
    character(*), intent(in), optional :: rule, options
    type(adasum_report), intent(inout), optional, target :: report
    integer, intent(out), optional :: ierror
    type(arguments), target :: given
    call understand(given, lengths, rule, options)
    call finish(c_allreduce(int(comm, c_int), c_loc(data), size(data, kind=c_size_t), type, given%c_lengths, given%segments, &
                            given%c_rule, given%c_options, address(report)), ierror)
  end subroutine allreduce_by_handle

  subroutine plan_create(mold, comm, plan, lengths, rule, options, ierror)
    real(real32), intent(in), target :: mold(..)
    type(MPI_Comm), intent(in) :: comm
    type(adasum_plan), intent(inout) :: plan
    class(*), intent(in), optional :: lengths(:)
    character(*), intent(in), optional :: rule, options
    integer, intent(out), optional :: ierror
    call plan_create_by_handle(mold, comm%MPI_VAL, plan, lengths, rule, options, ierror)
  end subroutine plan_create

  subroutine plan_create_by_handle(mold, comm, plan, lengths, rule, options, ierror)
    real(real32), intent(in), target :: mold(..)
    integer, intent(in) :: comm
    type(adasum_plan), intent(inout) :: plan
    class(*), intent(in), optional :: lengths(:)
    character(*), intent(in), optional :: rule, options
    integer, intent(out), optional :: ierror
    type(arguments), target :: given
    integer(c_size_t) :: count
    integer :: error
    call understand(given, lengths, rule, options)
    count = size(mold, kind=c_size_t)
    error = c_plan_create(int(comm, c_int), c_loc(mold), count, type, given%c_lengths, given%segments, given%c_rule, &
                          given%c_options, plan%id)
    if (error == adasum_success) plan%count = count
    call finish(error, ierror)
  end subroutine plan_create_by_handle

  subroutine plan_run(plan, data, report, ierror)
    type(adasum_plan), intent(in) :: plan
    real(real32), intent(inout), contiguous, target :: data(..)
    type(adasum_report), intent(inout), optional, target :: report
    integer, intent(out), optional :: ierror
    call finish(c_plan_run(plan%id, c_loc(data), size(data, kind=c_size_t), type, address(report)), ierror)
  end subroutine plan_run

  ! Not declared contiguous: a copy that the compiler makes would be gone before the reduction ends.
  subroutine plan_start(plan, data, ierror)
    type(adasum_plan), intent(in) :: plan
    real(real32), intent(inout), asynchronous, target :: data(..)
    integer, intent(out), optional :: ierror
    call finish(c_plan_start(plan%id, c_loc(data), size(data, kind=c_size_t), type, &
                             merge(1_c_int, 0_c_int, is_contiguous(data))), ierror)
  end subroutine plan_start

  subroutine plan_buffer(plan, buffer, ierror)
    type(adasum_plan), intent(in) :: plan
    real(real32), pointer, contiguous, intent(out) :: buffer(:)
    integer, intent(out), optional :: ierror
    type(c_ptr) :: memory
    integer :: error
    nullify (buffer)
    error = c_plan_buffer(plan%id, type, memory)
    if (error == adasum_success) call c_f_pointer(memory, buffer, [plan%count])
    call finish(error, ierror)
  end subroutine plan_buffer

end module adasum_real32
