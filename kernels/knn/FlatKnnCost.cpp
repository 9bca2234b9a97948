#include "kernels/knn/FlatKnnCost.h"

#include <algorithm>
#include <cmath>

#include "kernels/knn/RowFacts.h"
#include "kernels/knn/fused/FusedCost.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/select/SelectCost.h"

namespace faiss_bits {

namespace {

// The constants below are microseconds on an H200, fitted to the median times
// of flat.json, flat_few_vectors.json, flat_sweep.json, metrics.json and
// metrics_d128.json in benchs/results/h200; docs/design/plans.md says how.

/// Operations of float32 and 16-bit products of cuBLAS, in a microsecond.
constexpr double kProductRate = 50e6;
constexpr double kHalfProductRate = 160e6;

/// The numbers that every term is made of.
struct Shape {
    double n = 0;
    double q = 0;
    double d = 0;
    double k = 0; // that there are vectors for
    bool isFew = false;
    bool isFloat = true;
    bool isCosine = false;
    double size = 4; // bytes of a component

    explicit Shape(const FlatKnnProblem& p)
            : n(double(p.numVectors)),
              q(double(p.numQueries)),
              d(double(p.d)),
              k(double(std::min<idx_t>(p.k, p.numVectors))),
              isFew(batchOf(p) <= kFewQueries),
              isFloat(p.dataType == DataType::Float32),
              isCosine(p.metric == Metric::Cosine),
              size(double(sizeOf(p.dataType))) {}
};

/// Of a pair, for each component and two and a half more, by the kernels that
/// go component by component; 16 queries or fewer take a little less.
double pairMicroseconds(const FlatKnnProblem& p) {
    switch (p.metric) {
        case Metric::InnerProduct:
            return 60e-9;
        case Metric::Cosine:
            return 65e-9;
        case Metric::Linf:
            return 90e-9;
        case Metric::Canberra:
            return 205e-9;
        case Metric::JensenShannon:
            return 355e-9;
        case Metric::Lp:
            // Half powers have terms of their own (PairwiseTerms.cuh).
            return p.metricArg == 3 || p.metricArg == 4        ? 128e-9
                    : p.metricArg == 1 || p.metricArg == 2     ? 87e-9
                    : p.metricArg == 0.5 || p.metricArg == 1.5 ? 250e-9
                                                               : 500e-9;
        default:
            return 87e-9;
    }
}

double direct(const FlatKnnProblem& p, const Shape& s) {
    // Without what the model has for launches, and with what a search by itself
    // takes: it was fitted to kernels that ran back to back.
    return 15 + 1.28 * (directMicroseconds(p) - 9) + 14e-3 * s.k +
            (s.isFloat ? 0 : 1) + (s.isCosine ? 1.6 : 0);
}

double allPairs(const FlatKnnProblem& p, const Shape& s) {
    return 10.4 + 1.18 * (allPairsMicroseconds(p) - 5) + 15.5e-3 * s.k +
            (s.isFloat ? 0 : 2.6) + (s.isCosine ? 2.6 : 0);
}

/// What the metric wants to know of the vectors, where it is not known.
double rowFacts(
        const FlatKnnProblem& p,
        const Shape& s,
        const DeviceSpeed& speed) {
    if (rowFactsOf(p.metric) == RowFacts::None || p.vectorFacts) {
        return 0;
    }
    return 8 + 1.2 * readMicroseconds(s.n * s.d * s.size, speed);
}

double nearest(
        const FlatKnnProblem& p,
        const Shape& s,
        const DeviceSpeed& speed) {
    const double work =
            1.17 * 2 * s.q * s.n * tensorImageWidth(p) / kTensorRate +
            70e-9 * s.q * s.n + 1e-3 * s.q;
    return 35 + work / speed.arithmetic +
            11.3 * readMicroseconds(4 * s.q * s.d, speed) +
            (p.searchImage ? 0 : searchImageMicroseconds(p, speed));
}

double fusedPairwise(
        const FusedPlan& plan,
        const FlatKnnProblem& p,
        const Shape& s,
        const DeviceSpeed& speed) {
    const double read = readMicroseconds(s.n * s.d * s.size, speed);
    const double pairs = s.q * s.n * (s.d + 2.5) * pairMicroseconds(p);
    const double scores =
            s.q * passingVectors(plan, p) * (193e-6 + 530e-9 * s.d);
    const double facts = rowFacts(p, s, speed);
    if (s.isFew) {
        // One query waits for the memory alone.
        return 39 + facts + read +
                ((s.q > 1 ? 0.8 * pairs : 0) + scores + 10e-3 * s.k) /
                speed.arithmetic;
    }
    return 39 + facts + read + (pairs + scores) / speed.arithmetic;
}

/// The matrix of distances, all tiles of it.
double matrix(
        const FlatKnnPlan& plan,
        const FlatKnnProblem& p,
        const Shape& s,
        const DeviceSpeed& speed) {
    const double columns = double(plan.columns);
    const double write = readMicroseconds(4 * s.q * columns, speed);
    if (plan.method == &kFewQueriesMethod) {
        return 0.94 * readMicroseconds(columns * s.d * s.size, speed) +
                s.q * columns * (3e-6 + 72e-9 * s.d) / speed.arithmetic + write;
    }
    if (plan.method == &kPairwiseMethod) {
        return write +
                1.16 * s.q * columns * (s.d + 2.5) * pairMicroseconds(p) /
                speed.arithmetic;
    }
    // Products come in tiles of 128 vectors, and read queries as often as that
    // is little.
    const double rate = s.isFloat ? kProductRate : kHalfProductRate;
    const double products = 2 * s.q * std::max(columns, 128.0) *
            std::max(16.0, s.d) / rate / speed.arithmetic;
    return write + products + 1e-6 * s.q * columns / speed.arithmetic +
            2 * readMicroseconds(s.q * s.d * s.size, speed);
}

double tiled(
        const FlatKnnPlan& plan,
        const FlatKnnProblem& problem,
        const Shape& s,
        const DeviceSpeed& speed) {
    const FlatKnnProblem p = generatorProblem(problem, plan);
    const double sets = std::ceil(s.q / double(plan.tileQueries));
    const FlatKnnPlan::Selection& first = plan.selections.front();
    double time = 30 + rowFacts(p, s, speed) + matrix(plan, p, s, speed) +
            sets * double(plan.numVectorTiles) *
                    selectMicroseconds(
                            first.plan,
                            tileSelection(p, plan, first.rows, first.cols),
                            speed);
    const FlatKnnPlan::Selection& last = plan.selections.back();
    if (last.ofSlots) {
        // The first slot holds the best so far.
        const double merges =
                std::ceil((double(plan.numVectorTiles) - 1) / (plan.slots - 1));
        const int filled = int(last.cols / p.k);
        time += sets * merges *
                selectMicroseconds(
                        last.plan,
                        mergeSelection(p, plan, last.rows, filled),
                        speed);
    }
    if (plan.certified) {
        time += 1240e-9 * s.q * plan.places * s.d / speed.arithmetic;
    }
    return time;
}

/// Of the searches; the merge of some results is little beside them.
double parts(
        const PartsPlan& plan,
        const FlatKnnProblem& p,
        const DeviceSpeed& speed) {
    const size_t left = plan.bytes - plan.listBytes;
    double time = 0;
    for (int part : {0, plan.parts - 1}) {
        const FlatKnnProblem some = partOf(p, plan, part, 0, plan.tileQueries);
        const double tiles = double(p.numQueries) / double(plan.tileQueries);
        time += (part == 0 ? plan.parts - 1 : 1) * tiles *
                flatKnnMicroseconds(planFlatKnn(some, left), some, speed);
    }
    return time;
}

} // namespace

double flatKnnMicroseconds(
        const FlatKnnPlan& plan,
        const FlatKnnProblem& p,
        const DeviceSpeed& speed) {
    const Shape s(p);
    if (plan.parts) {
        return parts(*plan.parts, p, speed);
    }
    if (plan.line) {
        return lineMicroseconds(p);
    }
    if (plan.sortedLine) {
        return sortedLineMicroseconds(p);
    }
    if (plan.direct) {
        return direct(p, s);
    }
    if (plan.fewDims) {
        return fewDimsMicroseconds(p);
    }
    if (plan.fewDimsTop) {
        return fewDimsTopMicroseconds(p);
    }
    if (plan.allPairs) {
        return allPairs(p, s);
    }
    if (plan.nearest) {
        return nearest(p, s, speed);
    }
    if (plan.fused) {
        return plan.fused->method == &kTensorFusedMethod
                ? fusedTensorMicroseconds(
                          *plan.fused, seenBy(*plan.fused, p), speed)
                : fusedPairwise(*plan.fused, p, s, speed);
    }
    return plan.method ? tiled(plan, p, s, speed) : 0;
}

} // namespace faiss_bits
