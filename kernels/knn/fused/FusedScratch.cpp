#include "kernels/knn/fused/FusedScratch.h"

#include <algorithm>

#include "kernels/knn/RowFacts.h"
#include "kernels/knn/fused/FusedLists.h"
#include "kernels/knn/fused/SlotRows.h"
#include "kernels/knn/gemm/Product.h"

namespace faiss_bits {

FlatKnnProblem sampleProblem(
        const FlatKnnProblem& problem,
        const FusedPlan& plan) {
    FlatKnnProblem sample = problem;
    if (plan.method->normalizes && problem.metric == Metric::Cosine) {
        sample.metric = Metric::L2;
    }
    sample.mode = SearchMode::Plain;
    sample.dataType = plan.method->sampleType;
    sample.vectorsRowMajor = true;
    sample.queriesRowMajor = true;
    sample.exactQueries = nullptr;
    sample.vectorFacts = nullptr;
    sample.allowedBits = nullptr; // the limits leave out what is not
    sample.allowedIds = nullptr;
    sample.numVectors = plan.samples;
    sample.vectorNorms = nullptr;
    return sample;
}

const DistanceMethod& samplingMethod(
        const FlatKnnProblem& problem,
        const FusedPlan& plan) {
#ifndef FAISS_BITS_PRODUCTS_ONLY
    if (problem.metric == Metric::L2 && plan.method == &kPairwiseFusedMethod) {
        return kPairwiseMethod;
    }
#endif
    return distanceMethodFor(sampleProblem(problem, plan));
}

FusedScratch::FusedScratch(
        const FlatKnnProblem& p,
        const FusedPlan& plan,
        WorkspaceSlices& slices) {
    const DataType type = plan.method->sampleType;
    if (plan.sampling) {
        product = slices.take<uint8_t>(Product::workspaceBytes(type));
        if (!plan.method->bringsSample) {
            sample = slices.take<float>(size_t(plan.samples) * p.d);
            if (p.metric == Metric::L2 && plan.sampling->addsNorms) {
                sampleNorms = slices.take<float>(plan.samples);
            }
        }
    }
    if (p.allowedBits && !plan.givenLimits && plan.secondStrips.perRow == 0) {
        sampleBits = slices.take<uint32_t>((plan.samples + 31) / 32);
        if (plan.secondSamples > 0) {
            secondBits = slices.take<uint32_t>((plan.secondSamples + 31) / 32);
        }
    }
    const Metric sampleMetric = sampleProblem(p, plan).metric;
    if (plan.sampling && rowFactsOf(sampleMetric) != RowFacts::None) {
        sampleFacts = slices.take<float>(plan.samples);
        queryFacts = slices.take<float>(plan.sampleQueries);
    }
    distances = slices.take<float>(size_t(plan.sampleQueries) * plan.samples);
    if (!plan.atOnce) { // whose keys stay in registers
        stripKeys = slices.take<float>(
                size_t(plan.tileQueries) *
                std::max(plan.strips.perRow, plan.secondStrips.perRow));
    }
    limits = slices.take<float>(plan.tileQueries);
    complete = slices.take<float>(plan.tileQueries);
    counts = slices.take<uint32_t>(plan.tileQueries);
    if (scoresBySlots(plan, p)) {
        slotRows = slices.take<float>(slotCopySize(p.numVectors, p.d));
    }
    if (passesToBits(plan, p)) {
        bits = slices.take<uint32_t>(size_t(plan.tileQueries) * wordsOf(p));
    }
    certified.take(p, 0, plan.tileQueries, slices);
    certified.takeFacts(p, plan.method->bound(p), slices);
    const ListPlaces places = listPlaces(plan, p);
    const size_t queries = size_t(plan.tileQueries);
    certified.columns = slices.take<int32_t>(queries * places.columns);
    // The lists of the scan of queries that are searched again lie there too.
    certified.listEntries = std::max(
            queries * places.entries, wantedListEntries(p, plan.tileQueries));
    certified.lists = slices.take<uint64_t>(certified.listEntries);
    certified.entries = certified.lists;
    certified.takeAgain(p, plan.tileQueries, slices);
    const LimitsOf limitsOf = plan.sampling ? LimitsOf::Sample
            : plan.secondStrips.perRow > 0  ? LimitsOf::SecondStrips
                                            : LimitsOf::Others;
    scan = plan.method->prepare(p, plan.tileQueries, limitsOf, slices);
}

} // namespace faiss_bits
