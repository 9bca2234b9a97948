#include "kernels/select/threshold/SampleChoice.h"

#include <algorithm>

namespace faiss_bits {

namespace {

/// A run of the sample costs as much memory traffic as this many bytes read in
/// a row (measured, H200).
constexpr double kRunBytes = 128;

/// What the sum of Poisson many numbers of at most `size` reaches once in three
/// thousand times, within one of the exact count for size = 1: this runs on
/// every call, so no sums. A row where it happens is read again, which costs
/// less than a wider limit for all.
double rareSum(double mean, double size = 1) {
    return std::ceil(mean + 3.43 * std::sqrt(size * mean) + 2 * size);
}

/// The same once in twenty times.
double seldomSum(double mean, double size) {
    return std::ceil(mean + 1.65 * std::sqrt(size * mean) + 0.3 * size);
}

/// Rows of a multiprocessor that are so many that one in twenty may be read
/// again: they take that much more time together, where a row among few would
/// be what the others wait for.
constexpr idx_t kManyRows = 16;

/// Part of the rank that the limit's may turn out to be above it.
double slackOf(int k) {
    return k <= kMaxSelectK ? 1.0 / 8 : 1.0 / 64;
}

/// Largest rank: beyond, the groups tell little.
double mostRank(const SampleDraw& draw, int k) {
    return draw.groups * 0.8 / (1 + slackOf(k));
}

/// Entries of the sample that are expected among the k best.
double expectedOf(const SampleChoice& sample, const SelectProblem& p) {
    return p.k * sample.draw.size / p.cols;
}

/// A rank, but no lower than in random order, and the highest that it may turn
/// out to be.
SampleRank rankFrom(
        const SampleChoice& sample,
        const SelectProblem& p,
        double rank) {
    const double most = std::max(mostRank(sample.draw, p.k), sample.rank);
    const double taken = std::clamp(rank, sample.rank, most);
    return {int(taken), int(taken * (1 + slackOf(p.k)))};
}

/// Survivors if the limit is lowered on the way at the best place: a part f of
/// the row leaves S f, the rest k / f - k.
double loweredSurvivors(double survivors, double k) {
    return survivors <= 1.5 * k ? survivors : 2 * std::sqrt(k * survivors) - k;
}

} // namespace

SampleChoice makeSample(
        double cols,
        int k,
        int threads,
        int places,
        uint32_t parts,
        bool lowers,
        double survivorBytes) {
    SampleChoice sample;
    SampleDraw& draw = sample.draw;
    draw.size = double(threads) * places * parts * kSampleItems;
    draw.groups = parts > 1 ? kSampledGroups : threads * kSampleItems;
    const double expected = k * draw.size / cols;
    // In a sorted row the best lie in runs of the sample, and no two of them
    // in one group.
    const double least = expected + std::min(k, kSampleRun) + 1;
    double wanted = std::max(rareSum(expected), least);
    double rank = draw.rankOf(wanted);
    if (rank < least && least < draw.groups) {
        rank = least;
        wanted = draw.entriesOf(rank);
    }
    const double share = wanted / draw.size; // of columns below the limit
    if (draw.size * 2 > cols || share > 0.5 || rank < least ||
        rank > mostRank(draw, k)) {
        return sample;
    }
    sample.places = places;
    sample.parts = parts;
    sample.rank = rank;
    const double slack = slackOf(k);
    sample.survivors = cols * share * (1 + slack / 2);
    const double deviation = cols * std::sqrt(share / draw.size);
    sample.random = sample.survivors * (1 + slack / 2) + 5 * deviation + 64;
    // In a sorted row the limit lies up to a run further than the r-th.
    const double runs = draw.size / kSampleRun;
    const auto inRuns = [&](double entries) {
        return (entries / kSampleRun + 2) * cols / runs;
    };
    sample.usual = std::max(
            std::min(cols, std::max(sample.random, inRuns(wanted))), double(k));
    // Twice: the sample may have too few of the k best, and too few of those
    // that are not above its limit.
    const double alike = rareSum(rareSum(expected, kSampleRun), kSampleRun) *
            cols / draw.size;
    sample.alike = std::max(sample.usual, std::min(cols, alike));
    sample.lowered = loweredSurvivors(sample.survivors, k);
    const double survivors = lowers ? sample.lowered : sample.survivors;
    sample.cost = runs * kRunBytes + survivors * survivorBytes;
    return sample;
}

SampleChoice bestSample(
        const SelectProblem& p,
        int threads,
        uint32_t parts,
        bool lowers,
        double survivorBytes,
        double maxCapacity) {
    SampleChoice best;
    for (int places = 1; places <= 16; places *= 2) {
        const SampleChoice sample = makeSample(
                double(p.cols),
                p.k,
                threads,
                places,
                parts,
                lowers,
                survivorBytes);
        if (sample.cost < best.cost && sample.usual <= maxCapacity) {
            best = sample;
        }
    }
    return best;
}

std::array<SampleRank, kSampleRanks> sampleRanks(
        const SampleChoice& sample,
        const SelectProblem& p,
        bool mayGrow) {
    std::array<SampleRank, kSampleRanks> ranks;
    const bool areMany = p.rows >= kManyRows * p.device.multiprocessors;
    const auto sum = areMany ? seldomSum : rareSum;
    for (int i = 0; i < kSampleRanks; ++i) {
        const double alike =
                std::min<double>(kLeastDispersion * (1 << i), kSampleRun);
        const double wanted = sum(expectedOf(sample, p), alike);
        const bool grows = i > 0 && mayGrow;
        ranks[i] = rankFrom(
                sample, p, grows ? sample.draw.rankOf(wanted) : sample.rank);
    }
    return ranks;
}

double mostAlikeSurvivors(const SampleChoice& sample, const SelectProblem& p) {
    const SampleDraw& draw = sample.draw;
    const double wanted = rareSum(expectedOf(sample, p), kSampleRun);
    const SampleRank rank = rankFrom(sample, p, draw.rankOf(wanted));
    return p.cols * draw.entriesOf(rank.most) / draw.size;
}

} // namespace faiss_bits
