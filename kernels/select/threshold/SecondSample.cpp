#include "kernels/select/threshold/SecondSample.h"

#include <algorithm>
#include <bit>

namespace faiss_bits {

namespace {

/// What each block draws: places of a thread, and at most this part of the
/// columns that it reads otherwise. With fewer places keys laid out against the
/// first sample mislead one row in ten of this one.
constexpr int kLeastPlaces = 8;
constexpr int kPart = 2;
/// How many times as many places a row may want that one block finishes.
constexpr int kMostMore = 8;

/// In bytes that the device could have read: a run of the sample, which most
/// blocks find in the L2; a survivor; and one of a list that is too long for
/// the shared memory of the block that finishes it, while others wait.
constexpr double kRunBytes = 32;
constexpr double kSurvivorBytes = 50;
constexpr double kLateSurvivorBytes = 3000;

double costOf(
        const SampleChoice& sample,
        const SelectProblem& p,
        idx_t segment) {
    const double blocks = double((p.cols + segment - 1) / segment);
    return blocks * sample.draw.size / kSampleRun * kRunBytes +
            sample.survivors * (kSurvivorBytes + kLateSurvivorBytes / p.rows);
}

} // namespace

SampleChoice secondSampleWithin(
        const SelectProblem& p,
        int places,
        double room) {
    for (int n = places; n >= 1; n /= 2) {
        const SampleChoice sample =
                makeSample(double(p.cols), p.k, kSplitThreads, n, 1, false, 0);
        if (sample.places > 0 && sample.usual <= room) {
            return sample;
        }
    }
    return {};
}

SampleChoice secondSample(const SelectProblem& p, idx_t segment) {
    const idx_t most = segment / (kPart * kSampleItems * kSplitThreads);
    const int places =
            int(std::bit_floor(uint32_t(std::max<idx_t>(kLeastPlaces, most))));
    SampleChoice best = secondSampleWithin(p, places, double(p.cols));
    if (p.k > kMaxSelectK || best.places == 0) {
        return best;
    }
    // More places leave the block that finishes a row fewer survivors.
    for (int more = 2; more <= kMostMore; more *= 2) {
        const SampleChoice sample =
                secondSampleWithin(p, places * more, double(p.cols));
        if (costOf(sample, p, segment) < costOf(best, p, segment)) {
            best = sample;
        }
    }
    return best;
}

} // namespace faiss_bits
