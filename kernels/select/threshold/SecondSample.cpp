#include "kernels/select/threshold/SecondSample.h"

#include <algorithm>
#include <bit>

#include "kernels/select/threshold/SecondPlaces.h"

namespace faiss_bits {

namespace {

/// What each block draws: places of a thread, and at most this part of the
/// columns that it reads otherwise. With fewer places keys laid out against the
/// first sample mislead one row in ten of this one.
constexpr int kLeastPlaces = 8;
constexpr int kPart = 2;

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

SampleChoice sampleBeside(const SelectProblem& p, const SampleChoice& first) {
    return makeSample(
            double(p.cols),
            p.k,
            kPartThreads,
            placesBeside(first.places, first.parts),
            first.parts,
            false,
            0);
}

SampleChoice secondSample(const SelectProblem& p, idx_t segment) {
    const idx_t most = segment / (kPart * kSampleItems * kSplitThreads);
    const int places =
            int(std::bit_floor(uint32_t(std::max<idx_t>(kLeastPlaces, most))));
    return secondSampleWithin(p, places, double(p.cols));
}

} // namespace faiss_bits
