#pragma once

#include "kernels/common/DeviceSpeed.h"
#include "kernels/knn/fused/FusedKnn.h"

/// Microseconds of searches on tensor cores, fitted to an H200
/// (FlatKnnCost.h): for the cost of a plan, and for the choice between limits
/// from a sample and from strips.
namespace faiss_bits {

/// Operations of tensor cores in a microsecond.
constexpr double kTensorRate = 790e6;

/// Components of a row of an image, and the step that has its norm.
double tensorImageWidth(const FlatKnnProblem& problem);

/// Strips for each place of the result, so that few more than k vectors pass
/// (1.15 k).
constexpr uint32_t kStripsOfPlace = 4;

/// Strips that limits of so many queries are made of, at least: some for each
/// place of the result, and of few queries so many that the scan's items fill
/// the GPU. A query's limits take little of them, and the more there are, the
/// less passes.
uint32_t leastStripsOf(const FusedPlan& plan, const FlatKnnProblem& problem);

/// Whether one kernel is to make limits and bits, where it can
/// (tensor/PassAtOnce.h): always of one block, and of clusters where their
/// strips are enough and their tiles fill the GPU many times.
bool atOncePays(const FlatKnnProblem& problem);

/// Members of the second sample within the limits that are made of it.
double secondReach(const FusedPlan& plan);

/// Vectors that pass the limits of a query.
double passingVectors(const FusedPlan& plan, const FlatKnnProblem& problem);

/// The making of a search image of the problem's vectors, which is in the time
/// of a plan where the problem has none.
double searchImageMicroseconds(
        const FlatKnnProblem& problem,
        const DeviceSpeed& speed = {});

/// Of a search for the nearest one (NearestKnn.h) whose vectors 16 bits tell
/// apart, with a kept image where the metric has one.
double nearestMicroseconds(const FlatKnnProblem& problem);

/// Of a plan by the tensor method.
double fusedTensorMicroseconds(
        const FusedPlan& plan,
        const FlatKnnProblem& problem,
        const DeviceSpeed& speed = {});

} // namespace faiss_bits
