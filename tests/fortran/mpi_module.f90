! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
!
! The calls that take a communicator, in a program that uses the module mpi, whose communicators are integers; lengths of every
! kind; and arrays that are not there, on one rank or on all. On any number of ranks.
program with_mpi
  use, intrinsic :: iso_fortran_env, only: error_unit, int8, int16, int64, real32, real64
  use mpi
  use adasum
  implicit none
  integer :: rank, ranks, failures = 0, checks = 0, all_failures, error, disagreement

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  disagreement = merge(adasum_agreement_error, adasum_bad_input, ranks > 1)
  call check_calls()
  call check_plans()
  call check_absent_local()
  call check_absent()
  call check_absent_in_plans()
  call check_lengths()
  call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call MPI_Finalize(error)
  if (all_failures > 0 .or. checks == 0) error stop 1

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    checks = checks + 1
    if (holds) return
    failures = failures + 1
    write (error_unit, '(a, i0, 4a)') 'rank ', rank, ': ', what, '; the last error: ', adasum_last_error()
  end subroutine check

  subroutine check_calls()
    real(real32) :: data(2, 3)
    real(real64) :: wide(6)
    type(adasum_report) :: report
    integer :: ierror
    data = real(rank + 1, real32)
    call adasum_allreduce(data, MPI_COMM_WORLD, rule='mean', report=report)
    call check(all(abs(data - 0.5*(ranks + 1)) < 1e-5), 'a mean')
    call check(index(adasum_report_json(report, 7), '{"step":7,') == 1, 'JSON, of a step that is an integer')
    call check(adasum_report_json(report, 7) == adasum_report_json(report, 7_int64), 'JSON, of a longer integer')
    call adasum_report_free(report)
    wide = real(rank + 1, real64)
    call adasum_allreduce(wide, MPI_COMM_WORLD, [4_int64, 2_int64], 'mean')
    call check(all(abs(wide - 0.5d0*(ranks + 1)) < 1d-12), 'a mean in double')
    call adasum_set_timeout(MPI_COMM_WORLD, 100d0)
    call adasum_set_timeout(MPI_COMM_WORLD, 100.0)
    call adasum_allreduce(data, MPI_COMM_NULL, ierror=ierror)
    call check(ierror == adasum_bad_input .and. index(adasum_last_error(), 'MPI_COMM_NULL') > 0, 'no communicator')
  end subroutine check_calls

  subroutine check_plans()
    real(real32), asynchronous :: data(6)
    real(real64) :: wide(6)
    type(adasum_plan) :: plan
    call adasum_plan_create(data, MPI_COMM_WORLD, plan, [2_int8, 4_int8], 'mean')
    data = real(rank, real32)
    call adasum_plan_start(plan, data)
    call adasum_plan_wait(plan)
    call check(all(abs(data - 0.5*(ranks - 1)) < 1e-5), 'a plan')
    call adasum_plan_free(plan)
    call adasum_plan_create(wide, MPI_COMM_WORLD, plan, [2_int64, 4_int64], 'mean')
    wide = rank
    call adasum_plan_run(plan, wide)
    call check(all(abs(wide - 0.5d0*(ranks - 1)) < 1d-12), 'a plan in double')
    call adasum_plan_free(plan)
  end subroutine check_plans

  ! Whether the call found that the array of this name is not there.
  subroutine check_is_absent(ierror, name, what)
    integer, intent(in) :: ierror
    character(*), intent(in) :: name, what
    call check(ierror == adasum_bad_input .and. index(adasum_last_error(), ': '//name//' is not allocated') > 0, what)
  end subroutine check_is_absent

  subroutine check_absent_local()
    real(real32), allocatable :: none(:), columns(:, :)
    real(real32), pointer, contiguous :: nothing(:), no_columns(:, :)
    real(real64), allocatable :: none_wide(:, :)
    real(real32) :: data(3), gradients(3, 2)
    real(real64) :: wide(1, 3)
    integer :: ierror
    nullify (nothing, no_columns)
    data = 2
    wide = 2
    gradients = 1
    call adasum_pair(none, data, data, ierror=ierror)
    call check_is_absent(ierror, 'a', 'a is not allocated')
    call adasum_pair(data, nothing, data, ierror=ierror)
    call check_is_absent(ierror, 'b', 'b has no target')
    call adasum_pair(data, data, none, ierror=ierror)
    call check_is_absent(ierror, 'out', 'out is not allocated')
    call adasum_pair(wide, wide, none_wide, ierror=ierror)
    call check_is_absent(ierror, 'out', 'out is not allocated, in double')
    call adasum_combine(columns, data, ierror=ierror)
    call check_is_absent(ierror, 'gradients', 'gradients are not allocated')
    call adasum_combine(no_columns, data, ierror=ierror)
    call check_is_absent(ierror, 'gradients', 'gradients have no target')
    call adasum_combine(gradients, none, ierror=ierror)
    call check_is_absent(ierror, 'out', 'the combination is not allocated')
    call adasum_combine(gradients, nothing, ierror=ierror)
    call check_is_absent(ierror, 'out', 'the combination has no target')
    call check(all(data == 2), 'unchanged')
    call adasum_combine(gradients(::2, :), data(::2), rule='sum')
    call check(data(1) == 2 .and. data(2) == 2 .and. data(3) == 2, 'sections')
  end subroutine check_absent_local

  ! All ranks hear of an array that is not there on one of them.
  subroutine check_absent()
    real(real32), allocatable :: data(:), matrix(:, :, :), empty(:)
    real(real64), pointer, contiguous :: wide(:)
    integer :: ierror
    allocate (empty(0))
    call adasum_allreduce(empty, MPI_COMM_WORLD, ierror=ierror)
    call check(ierror == adasum_success, 'an array of no elements')
    call adasum_allreduce(matrix, MPI_COMM_WORLD, ierror=ierror)
    call check_is_absent(ierror, 'data', 'allocated on no rank')
    nullify (wide)
    call adasum_allreduce(wide, MPI_COMM_WORLD, ierror=ierror)
    call check_is_absent(ierror, 'data', 'a target on no rank')
    if (rank > 0) allocate (data(5), source=1.0)
    call adasum_allreduce(data, MPI_COMM_WORLD, [2, 3], ierror=ierror)
    if (rank == 0) then
      call check_is_absent(ierror, 'data', 'allocated on all ranks but one')
    else
      call check(ierror == adasum_communication_error .and. all(data == 1), 'allocated here')
    end if
    call adasum_allreduce(data, MPI_COMM_WORLD, [2, 3], options='check_agreement=yes', ierror=ierror)
    call check(ierror == merge(adasum_bad_input, adasum_agreement_error, rank == 0) .and. &
               index(adasum_last_error(), 'data is not allocated') > 0, 'compared')
    if (rank == 0) allocate (data(5), source=1.0)
    call adasum_allreduce(data, MPI_COMM_WORLD, [2, 3])
    call check(all(abs(data - 1) < 1e-6), 'afterwards')
  end subroutine check_absent

  subroutine check_absent_in_plans()
    real(real32), allocatable, asynchronous :: data(:)
    real(real32) :: mold(5)
    real(real32), allocatable :: no_mold(:, :)
    type(adasum_plan) :: plan
    integer :: ierror
    call adasum_plan_create(no_mold, MPI_COMM_WORLD, plan, ierror=ierror)
    call check_is_absent(ierror, 'mold', 'no mold')
    call adasum_plan_create(mold, MPI_COMM_WORLD, plan, options='check_agreement=yes')
    if (rank > 0) allocate (data(5), source=1.0)
    call adasum_plan_run(plan, data, ierror=ierror)
    call check(ierror == disagreement .and. index(adasum_last_error(), 'data is not allocated') > 0, 'a run')
    call adasum_plan_start(plan, data, ierror)
    call check(ierror == adasum_success, 'a start')
    call adasum_plan_wait(plan, ierror=ierror)
    call check(ierror == disagreement .and. index(adasum_last_error(), 'data is not allocated') > 0, 'a wait')
    if (rank == 0) allocate (data(5), source=1.0)
    call adasum_plan_run(plan, data)
    call check(all(abs(data - 1) < 1e-6), 'a run afterwards')
    call adasum_plan_free(plan)
  end subroutine check_absent_in_plans

  subroutine check_lengths()
    real(real32) :: data(6)
    integer, allocatable :: none(:)
    integer :: ierror
    data = 1
    call adasum_allreduce(data, MPI_COMM_WORLD, [1_int16, 5_int16])
    call adasum_allreduce(data, MPI_COMM_WORLD, none)  ! as if it were absent, says Fortran
    call check(all(abs(data - 1) < 1e-6), 'lengths')
    call adasum_allreduce(data, MPI_COMM_WORLD, [-1_int64, 7_int64], ierror=ierror)
    call check(ierror == adasum_bad_input .and. index(adasum_last_error(), 'negative') > 0, 'a negative length')
    call adasum_allreduce(data, MPI_COMM_WORLD, [2_int64**40, 6 - 2_int64**40], ierror=ierror)
    call check(ierror == adasum_bad_input, 'a length below 0 beside one beyond 2**31')
    call adasum_allreduce(data, MPI_COMM_WORLD, [2_int64**40], ierror=ierror)
    call check(ierror == adasum_bad_input .and. index(adasum_last_error(), '1099511627776') > 0, 'a length beyond 2**31')
    call adasum_allreduce(data, MPI_COMM_WORLD, [1.0, 5.0], ierror=ierror)
    call check(ierror == adasum_bad_input .and. index(adasum_last_error(), 'must be integers') > 0, 'lengths that are real')
    call adasum_pair(data, data, data, [1.0, 5.0], ierror)
    call check(ierror == adasum_bad_input .and. index(adasum_last_error(), 'must be integers') > 0, 'real lengths of a pair')
    call adasum_pair(data, data, data, [2_int64, 4_int64])
    call check(all(abs(data - 1) < 1e-6), 'lengths of a pair')
  end subroutine check_lengths

end program with_mpi
