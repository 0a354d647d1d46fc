! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
!
! Each call of the module `adasum`, and each error of its own; on any number of ranks.
program calls
  use, intrinsic :: ieee_arithmetic, only: ieee_is_nan, ieee_positive_inf, ieee_value
  use, intrinsic :: iso_fortran_env, only: error_unit, int64, real32, real64
  use mpi_f08
  use adasum
  implicit none
  integer :: rank, ranks, failures = 0, checks = 0, all_failures

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call check_library()
  call check_local()
  call check_ranks_real32()
  call check_ranks_real64()
  call check_plan()
  call check_errors()
  call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (all_failures > 0 .or. checks == 0) error stop 1

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    checks = checks + 1
    if (holds) return
    failures = failures + 1
    write (error_unit, '(a,i0,4a)') 'rank ', rank, ': ', what, '; last error: ', adasum_last_error()
  end subroutine check

  subroutine check_library()
    call check(adasum_version() > 0, 'a version')
    call check(index(adasum_rules(), 'adasum, ') == 1, 'the rules')
    call check(adasum_error_name(adasum_bad_input) == 'ADASUM_BAD_INPUT', 'bad_input')
    call check(adasum_error_name(adasum_agreement_error) == 'ADASUM_AGREEMENT_ERROR', 'agreement_error')
    call check(adasum_error_name(adasum_nonfinite_error) == 'ADASUM_NONFINITE_ERROR', 'nonfinite_error')
    call check(adasum_error_name(adasum_shared_memory_error) == 'ADASUM_SHARED_MEMORY_ERROR', 'shared_memory_error')
    call check(adasum_error_name(adasum_communication_error) == 'ADASUM_COMMUNICATION_ERROR', 'communication_error')
    call check(adasum_error_name(adasum_timeout_error) == 'ADASUM_TIMEOUT_ERROR', 'timeout_error')
    call check(adasum_error_name(adasum_mpi_error) == 'ADASUM_MPI_ERROR', 'mpi_error')
    call check(adasum_error_name(adasum_out_of_memory) == 'ADASUM_OUT_OF_MEMORY', 'out_of_memory')
    call check(adasum_error_name(adasum_other_error) == 'ADASUM_OTHER_ERROR', 'other_error')
  end subroutine check_library

  subroutine check_local()
    real(real64) :: a(4) = [1, 0, 3, 4], b(4) = [0, 2, 3, 4], out(4), gaps(2, 4), square(2, 2)
    real(real32) :: columns(3, 2) = reshape(real([1, 0, 0, 0, 1, 0], real32), [3, 2]), sum3(3)
    type(adasum_report) :: report
    integer :: ierror
    call adasum_pair(a, b, out, [2, 2])
    call check(all(out == [1, 2, 3, 4]), 'a pair in two segments')
    gaps = 0
    gaps(1, :) = a
    call adasum_pair(gaps(1, :), b, gaps(2, :), lengths=[2, 2])
    call check(all(gaps(2, :) == [1, 2, 3, 4]), 'arrays with gaps')
    square = reshape(a, [2, 2])
    call adasum_pair(square, square, square)
    call check(all(square == reshape(a, [2, 2])), 'a matrix')
    call adasum_pair(a, b(:3), out, ierror=ierror)
    call check(ierror == adasum_bad_input .and. index(adasum_last_error(), 'b has 3 elements') > 0, 'unequal lengths')
    call adasum_pair(a, b, out, [5, -1], ierror)
    call check(ierror == adasum_bad_input .and. index(adasum_last_error(), 'negative') > 0, 'a negative length')
    call adasum_combine(columns, sum3, rule='sum', report=report)
    call check(all(sum3 == [1, 1, 0]), 'a sum')
    call check(adasum_report_contributions(report) == 2 .and. adasum_report_segments(report) == 1, 'counts')
    call check(adasum_report_rule(report) == 'sum' .and. adasum_report_schedule(report) == '', 'names')
    call check(adasum_report_norm(report, 1, 1) == 1 .and. adasum_report_weight(report, 0, 1) == 1, 'norm and weight')
    call check(abs(adasum_report_result_norm(report, 1) - sqrt(2d0)) < 1d-12, 'the norm of the result')
    call check(abs(adasum_report_orthogonality(report) - 1) < 1d-12, 'orthogonality')
    call check(abs(adasum_report_orthogonality(report, 1) - 1) < 1d-12, 'orthogonality of a segment')
    call check(ieee_is_nan(adasum_report_norm(report, 0, 2)), 'no segment 2')
    call check(ieee_is_nan(adasum_report_norm(report, 0, 0)), 'no segment 0')
    call check(ieee_is_nan(adasum_report_orthogonality(report, 0)), 'orthogonality of no segment')
    call check(adasum_report_finite(report) .and. size(adasum_report_excluded(report)) == 0, 'finite')
    call check(index(adasum_report_json(report, 7_int64), '{"step":7,"rule":"sum"') == 1, 'JSON')
    call adasum_combine(columns, sum3(:2), ierror=ierror)
    call check(ierror == adasum_bad_input .and. index(adasum_last_error(), 'has 3 elements') > 0, 'a short output')
    columns(2, 2) = ieee_value(1.0_real32, ieee_positive_inf)
    call adasum_combine(columns, sum3, rule='mean   ', options='nonfinite=exclude', report=report)
    call check(.not. adasum_report_finite(report) .and. all(adasum_report_excluded(report) == [1]), 'excluded')
    call check(size(adasum_report_excluded(report)) == 1, 'one is excluded')
    call adasum_report_free(report)
    call adasum_report_free(report, ierror)
    call check(ierror == adasum_success, 'no report')
  end subroutine check_local

  subroutine check_ranks_real32()
    real(real32) :: data(2, 3), whole(4, 6)
    type(adasum_report) :: report
    data = real(rank + 1, real32)
    call adasum_allreduce(data, MPI_COMM_WORLD, rule='mean', report=report)
    call check(all(abs(data - 0.5*(ranks + 1)) < 1e-5), 'a mean of matrices')
    call check(adasum_report_contributions(report) == ranks, 'contributions')
    call adasum_report_free(report)
    whole = 0
    whole(2:3, ::2) = 1
    call adasum_allreduce(whole(2:3, ::2), MPI_COMM_WORLD, [2, 4], options='check_agreement=yes')  ! equal vectors: their mean
    call check(all(abs(whole(2:3, ::2) - 1) < 1e-6) .and. sum(whole) > 5.9 .and. sum(whole) < 6.1, 'a part of a matrix')
  end subroutine check_ranks_real32

  subroutine check_ranks_real64()
    real(real64) :: data(ranks), scalar
    integer :: lengths(ranks)
    data = 0
    data(rank + 1) = 1
    lengths = 1
    call adasum_allreduce(data, MPI_COMM_WORLD, lengths)
    call check(all(data == 1), 'orthogonal segments')
    scalar = 3
    call adasum_allreduce(scalar, MPI_COMM_WORLD)
    call check(abs(scalar - 3) < 1d-12, 'a scalar')
    call adasum_set_timeout(MPI_COMM_WORLD, 100d0)
  end subroutine check_ranks_real64

  subroutine check_plan()
    real(real64), asynchronous :: data(10), whole(2, 10)
    real(real64), pointer, contiguous :: buffer(:)
    real(real32), pointer, contiguous :: other(:)
    real(real32) :: narrow(10) = 0
    type(adasum_plan) :: plan, none
    type(adasum_report) :: report
    logical :: done
    integer :: ierror, disagreement
    disagreement = merge(adasum_agreement_error, adasum_bad_input, ranks > 1)
    call adasum_plan_create(data, MPI_COMM_WORLD, plan, [4, 6], 'mean', 'check_agreement=yes')
    data = rank
    call adasum_plan_run(plan, data, report)
    call check(all(abs(data - 0.5d0*(ranks - 1)) < 1d-12), 'a run')
    data = rank
    call adasum_plan_start(plan, data)
    done = .false.
    do while (.not. done)
      call adasum_plan_test(plan, done)
    end do
    call adasum_plan_wait(plan, report)
    call check(all(abs(data - 0.5d0*(ranks - 1)) < 1d-12), 'start and wait')
    call adasum_plan_start(plan, whole(1, :))
    call adasum_plan_wait(plan, ierror=ierror)
    call check(ierror == disagreement .and. index(adasum_last_error(), 'gaps') > 0, 'gaps in start')
    call adasum_plan_run(plan, narrow, ierror=ierror)
    call check(ierror == disagreement .and. index(adasum_last_error(), 'float') > 0, 'another type')
    call adasum_plan_run(plan, data(:9), ierror=ierror)
    call check(ierror == disagreement, 'another length')
    call adasum_plan_buffer(plan, buffer)
    call check(size(buffer) == 10, 'the length of the buffer')
    buffer = rank
    call adasum_plan_run(plan, buffer)
    call check(all(abs(buffer - 0.5d0*(ranks - 1)) < 1d-12), 'in the buffer')
    call adasum_plan_buffer(plan, other, ierror)
    call check(ierror == adasum_bad_input .and. .not. associated(other), 'a buffer of another type')
    call adasum_plan_free(plan)
    call adasum_plan_run(plan, data, ierror=ierror)
    call check(ierror == adasum_bad_input .and. index(adasum_last_error(), 'ADASUM_NULL') > 0, 'a plan that was freed')
    call adasum_plan_free(none, ierror)
    call check(ierror == adasum_success, 'no plan')
    call adasum_plan_test(none, done, ierror)
    call check(ierror == adasum_bad_input .and. .not. done, 'a test of no plan')
    call adasum_report_free(report)
  end subroutine check_plan

  subroutine check_errors()
    real(real32) :: data(3) = 1
    integer :: ierror
    call adasum_allreduce(data, MPI_COMM_NULL, ierror=ierror)
    call check(ierror == adasum_bad_input .and. index(adasum_last_error(), 'MPI_COMM_NULL') > 0, 'no communicator')
    call adasum_allreduce(data, MPI_COMM_WORLD, rule='median', ierror=ierror)
    call check(ierror == adasum_bad_input .and. index(adasum_last_error(), "no rule 'median'") > 0, 'no rule')
    call adasum_allreduce(data, MPI_COMM_WORLD, [1, 1], ierror=ierror)
    call check(ierror == adasum_bad_input .and. index(adasum_last_error(), '2 elements') > 0, 'lengths')
    call adasum_set_timeout(MPI_COMM_WORLD, -1d0, ierror)
    call check(ierror == adasum_bad_input, 'a timeout')
    call check(all(data == 1), 'unchanged')
  end subroutine check_errors

end program calls
