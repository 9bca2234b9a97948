#pragma once

#include "kernels/select/Select.h"
#include "kernels/select/threshold/SampleChoice.h"
#include "kernels/select/threshold/ThresholdPlan.h"

namespace faiss_bits {

/// A survivor takes about as much time as this many bytes read in a row
/// (measured, H200).
constexpr double kSurvivorBytes = 50;

/// A row of at most this many columns is not sampled.
constexpr idx_t kNoSampleCols = 2048;

/// So few rows that each block may have a multiprocessor.
inline bool areFew(const SelectProblem& p) {
    return p.rows <= p.device.multiprocessors;
}

/// The sample of a plan, its ranks, and room for its usual survivors.
void setSample(
        ThresholdPlan& plan,
        const SampleChoice& sample,
        const SelectProblem& p,
        bool mayGrow);

/// Survivors that each of some blocks of a multiprocessor has room for, of a
/// block that does a row alone or is its row's first.
double fusedCapacity(
        const SelectProblem& p,
        const ThresholdPlan& plan,
        int blocks);

/// One block a row, if that is the way to take them.
bool planWholeRows(const SelectProblem& p, ThresholdPlan& plan);

} // namespace faiss_bits
