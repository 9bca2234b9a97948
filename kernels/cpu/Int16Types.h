#pragma once

#include "kernels/cpu/KernelMetric.h"
#include "kernels/cpu/KernelTypes.h"

/// Sweeps whose components are rounded to 16-bit integers, two of which are
/// multiplied and added in the place of a float32: for the candidates of
/// certified searches, whose proof knows what the rounding may do.
///
/// Every row has a unit of its own, a power of two, so that rows of small
/// integers stay as they are. Sums of products are 32-bit integers that do not
/// overflow, by the lengths of the rows (Cauchy and Schwarz), and so are exact.
namespace faiss_bits::cpu {

/// Values of a packed row: pairs of integers, and behind them, float32, what
/// sums of products are multiplied by.
constexpr int int16PanelDepth(int depth) {
    return (depth + 1) / 2 + 1;
}

/// Multiply-adds of float32 that one of pairs of integers takes as long as.
constexpr double kInt16Operation = 1.1;

/// Kernels of one instruction set. Panels are as those of the plain kernels,
/// with int16PanelDepth values a row.
struct Int16Kernels {
    /// As CommonKernels; `terms` are |x|^2, rounded as float32 sums are.
    void (*packVectors)(const PackJob<float>&, KernelMetric) = nullptr;
    void (*packQueries)(const PackJob<float>&, KernelMetric) = nullptr;
    /// As MetricKernels, for the two metrics.
    void (*runTilesL2)(const TileJob<float>&) = nullptr;
    void (*runTilesProduct)(const TileJob<float>&) = nullptr;
    /// The length of what the integers leave of a row, at most; infinity for
    /// one that they cannot stand for.
    double (*roundingOf)(const float* row, int depth) = nullptr;

    explicit operator bool() const {
        return packVectors;
    }
};

/// Those compiled for a target; none where it has no such instructions.
Int16Kernels int16KernelsFor(int64_t target);

} // namespace faiss_bits::cpu
