#include "kernels/cpu/CostModel.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/KnnSelection.h"
#include "kernels/cpu/MachineFile.h"

namespace faiss_bits::cpu {

namespace {

// Costs that the paper has no constant for, as multiples of a random access
// (tau_l) or of a streamed value (tau_b). Fitted to times of n = 1000 .. 10^6,
// d = 4 .. 768, k = 1 .. n on a 2-core AMD EPYC with AVX-512, 2026-11.
constexpr double kTileEmit = 3;     ///< tau_l, a tile that something passes
constexpr double kBufferPass = 0.3; ///< tau_l, a candidate into a buffer
constexpr double kBufferRow = 25;   ///< tau_l, cuts and the end of a row
constexpr double kHeapPass = 2.7;   ///< tau_l, a candidate into a heap
constexpr double kStoredPass = 3.4; ///< tau_l, the same after the sixth loop
constexpr double kStore = 2; ///< tau_b, a distance written and read in a cache
constexpr double kStoreFar = 6; ///< tau_b, the same where a batch has too many
constexpr double kSortedEntry = 0.27; ///< tau_l, an entry of the result
constexpr double kWholeEntry = 0.55;  ///< tau_l, the same from a whole row
constexpr double kPackedValue = 1.7;  ///< tau_b, a value read and packed
constexpr double kSharedValue = 1.5; ///< tau_b, more where all threads share it
/// tau_b, a value that was packed on another core, for each doubling of more
/// than two threads; hidden behind arithmetic where there is more of that. 64
/// queries on 16 cores of a Xeon took 1.4 with n = 10^5, d = 16, and 3.7 with
/// n = 4 x 10^5, d = 3.
constexpr double kFarValue = 2;
constexpr double kFilterOperations = 3; ///< (2 d + 3) m n, as in the paper
constexpr double kForkSeconds = 8e-6;   ///< a parallel loop

struct Passes {
    double candidates = 0; ///< of a row
    double tiles = 0;      ///< of a row: those that anything passes, shared
};

/// Candidates among n in random order that are under the k-th of those before,
/// where the limit is that of the `slack` times k-th.
Passes countPasses(double n, double k, double slack, const Plan& plan) {
    const double first = std::min(n, k * slack);
    const double perTile = double(plan.tileVectors) * plan.tileQueries;
    Passes passes;
    passes.candidates = first;
    passes.tiles = first / perTile;
    for (double from = first; from < n; from *= 2) {
        const double count = std::min(from, n - from);
        const double found = k * slack * std::log1p(count / from);
        const double tiles = count / perTile;
        passes.candidates += found;
        passes.tiles += tiles * -std::expm1(-found / tiles);
    }
    return passes;
}

/// Selection from n vectors, for one row.
double selectionSeconds(
        const Plan& plan,
        double n,
        double k,
        int scalarBytes,
        const Machine& m) {
    const double access = m.secondsPerAccess;
    switch (plan.variant) {
        case Variant::Var1: {
            const Passes passes = countPasses(n, k, 1, plan);
            return access *
                    (passes.candidates * kHeapPass + passes.tiles * kTileEmit +
                     k * kSortedEntry);
        }
        case Variant::Var5:
        case Variant::Var6: {
            const double columns = plan.variant == Variant::Var6
                    ? n
                    : std::min<double>(n, plan.vectorBlock);
            const double bytes =
                    columns * double(plan.batchQueries) * scalarBytes;
            const double stored = n * m.secondsPerValue * (scalarBytes / 4.0) *
                    (bytes < m.sharedBytes / 2 ? kStore : kStoreFar);
            if (plan.variant == Variant::Var6 &&
                selectsWholeRow(plan, idx_t(k), idx_t(n))) {
                return stored + access * (k * kWholeEntry + kBufferRow);
            }
            const Passes passes = countPasses(n, k, 1, plan);
            return stored +
                    access *
                    (passes.candidates * kStoredPass + k * kSortedEntry);
        }
        default: {
            const double capacity = double(plan.bufferCapacity);
            const Passes passes = countPasses(
                    n, k, std::max(1.0, (capacity + k) / 2 / k), plan);
            return access *
                    (std::min(n, passes.candidates) * kBufferPass +
                     passes.tiles * kTileEmit + k * kSortedEntry + kBufferRow);
        }
    }
}

Machine typicalMachine() {
    Machine machine;
    machine.operationsPerSecond = 1e11;
    machine.secondsPerValue = 2e-10;
    machine.secondsPerAccess = 1.5e-8;
    machine.cacheBytes = 1 << 20;
    machine.sharedBytes = 32 << 20;
    machine.lanes = 16;
    return machine;
}

} // namespace

double operationsOf(KernelMetric metric) {
    switch (metric) {
        case KernelMetric::L1:
        case KernelMetric::Linf:
            return 6;
        case KernelMetric::Squares:
            return 4;
        case KernelMetric::Power:
            return 60;
        // In float64 (measured on a Xeon with AVX-512, 100 queries).
        case KernelMetric::Canberra:
            return 90;
        case KernelMetric::BrayCurtis:
        case KernelMetric::Jaccard:
            return 30;
        case KernelMetric::JensenShannon:
            return 530;
        default:
            return 2;
    }
}

double predictSeconds(
        const SearchShape& shape,
        const Plan& plan,
        const Machine& machine) {
    const double q = double(shape.numQueries), n = double(shape.numVectors);
    if (q == 0 || n == 0) {
        return 0; // nothing is searched
    }
    const double k = double(shape.k), d = shape.depth;
    const double threads = plan.threads;
    // tau_f is of floats in the widest vectors; tau_b of 4 bytes.
    const double operation = 1 / machine.operationsPerSecond *
            (machine.lanes / double(shape.lanes));
    const double value = machine.secondsPerValue * (shape.scalarBytes / 4.0);
    const double perPair = shape.byInt16
            ? 2 * kInt16Operation * shape.panelDepth() + kFilterOperations
            : operationsOf(shape.metric) * d + kFilterOperations;
    if (plan.variant == Variant::Direct) {
        // Sums are joined at the end of a row: about 60 operations a lane.
        const double pair = operation * (2 * perPair + 10.0 * shape.lanes);
        const double work = q * n * pair +
                q * threads *
                        selectionSeconds(
                                plan,
                                n / threads,
                                k,
                                shape.scalarBytes,
                                machine);
        return std::max(n * d * value, work) / threads + kForkSeconds;
    }
    const double batches =
            std::ceil(q / std::max(1.0, double(plan.batchQueries)));
    const double perBatch = q / batches;
    double rows = perBatch; // that the busiest thread computes, all tiles whole
    double shares = 1;      // of the vectors, each with its own selection
    double far = 0;         // for what the others have packed
    double packing = n * d * value * kPackedValue / threads;
    if (plan.acrossVectors) {
        // Rows that are computed together: a third of a tile, of canonical
        // distances one.
        const double step =
                isAlwaysCanonical(shape.metric) ? 1 : plan.tileQueries / 3;
        rows = std::ceil(perBatch / step) * step / threads;
        shares = threads;
    } else {
        // Blocks get smaller towards the end, down to a quarter; the busiest
        // thread has such a one in whole tiles, however few the queries are.
        const double quarter = plan.queryBlock / 4.0;
        const double least =
                std::ceil(quarter / plan.tileQueries) * plan.tileQueries;
        rows = perBatch;
        if (threads > 1) {
            rows = std::max(
                    std::min(perBatch, least),
                    perBatch / threads + std::min(perBatch, quarter) / 2);
        }
        packing += n * d * value * kSharedValue / threads;
        far = n * d * value * kFarValue * std::max(0.0, std::log2(threads) - 1);
        // Queries are packed again for every block of vectors.
        packing += perBatch * d * value * kPackedValue *
                std::ceil(n / plan.vectorBlock) / threads;
    }
    const double arithmetic = std::max(far, rows * n * perPair * operation);
    const double selection = perBatch * shares / threads *
            selectionSeconds(plan, n / shares, k, shape.scalarBytes, machine);
    return batches * (arithmetic + packing + selection + 2 * kForkSeconds);
}

const Machine& machineForPlan(const SearchShape& shape) {
    static const Machine typical = typicalMachine();
    constexpr double kWorthMeasuring = 1e10; // operations: 50 ms
    const double operations = 2.0 * double(shape.numQueries) *
            double(shape.numVectors) * shape.depth;
    return isMachineMeasured() || operations > kWorthMeasuring ||
                    !machineFile().empty()
            ? thisMachine()
            : typical;
}

} // namespace faiss_bits::cpu
