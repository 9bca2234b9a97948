#include "benchs/ivf/IvfSweepCells.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "benchs/ivf/IvfData.h"

namespace faiss_bits::bench {

namespace {

constexpr int kSearches = 4; // of an index
constexpr int kLeastD = 8;
constexpr int kMostD = 768;
constexpr int kLeastLists = 16;
constexpr int kMostLists = 8192;
constexpr int64_t kLeastLength = 8; // of a list, on average

/// As FAISS's GPU supports.
constexpr int kParts[] = {8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 96};

class Draw {
   public:
    explicit Draw(uint64_t seed) : random_(seed) {}

    int64_t below(int64_t count) {
        return int64_t(random_() % uint64_t(count));
    }

    /// Any size from least to most; of three, one is a power of two.
    int64_t size(int64_t least, int64_t most) {
        const double at = double(random_() >> 11) * 0x1p-53;
        double value = std::exp(
                std::log(double(least)) +
                at * (std::log(double(most) + 1) - std::log(double(least))));
        if (below(3) == 0) {
            value = std::exp2(std::round(std::log2(value)));
        }
        return std::clamp(int64_t(value), least, most);
    }

    uint64_t seed() {
        return random_();
    }

   private:
    std::mt19937_64 random_;
};

/// Half are of vectors as they are.
std::string drawKind(Draw& draw, int& d) {
    static const char* const kOthers[] = {
            "ivf_sq8", "ivf_sq8", "ivf_sq6", "ivf_sq4", "ivf_fp16"};
    const int64_t at = draw.below(16);
    if (at < 8) {
        return "ivf_flat";
    }
    if (at < 13) {
        return kOthers[at - 8];
    }
    d = std::max(d / 8 * 8, 16);
    std::vector<int> fitting;
    for (int parts : kParts) {
        if (d % parts == 0 && d / parts >= 2) {
            fitting.push_back(parts);
        }
    }
    return "ivf_pq" +
            std::to_string(fitting[draw.below(int64_t(fitting.size()))]);
}

IvfSweepIndex drawIndex(Draw& draw, bool withSift) {
    const auto& names = ivfDataNames();
    IvfSweepIndex index;
    const int64_t data = draw.below(int64_t(names.size()) + 1);
    const bool isSift = data == int64_t(names.size());
    index.data = !isSift ? names[data] : withSift ? "sift" : "clustered";
    index.shape.d = isSift ? kSiftD : int(draw.size(kLeastD, kMostD));
    index.shape.kind.name = drawKind(draw, index.shape.d);
    index.n = draw.size(
            kLeastIvfN,
            isSift ? kSiftVectors
                   : std::min(kMostIvfN, kMostIvfComponents / index.shape.d));
    index.shape.nlist = int(draw.size(
            kLeastLists,
            std::min<int64_t>(kMostLists, index.n / kLeastLength)));
    index.shape.metric =
            draw.below(4) == 0 ? faiss::METRIC_INNER_PRODUCT : faiss::METRIC_L2;
    index.shape.iterations = 4;
    index.shape.pointsOfList = 64;
    index.seed = draw.seed() >> 1;
    return index;
}

} // namespace

bool isIvfSweepSearch(
        const IvfSweepIndex& index,
        const IvfSweepIndex::Search& search) {
    const int64_t lists = search.q * search.nprobe;
    const double pairs =
            double(lists) * double(index.n) / double(index.shape.nlist);
    return search.nprobe >= 1 && search.nprobe <= index.shape.nlist / 2 &&
            search.k >= 1 && search.k <= kMostIvfK && search.q >= 1 &&
            search.q <= kMostIvfQueries &&
            (index.data != "sift" || search.q <= kSiftQueries) &&
            pairs * index.shape.d <= kMostIvfPairComponents &&
            lists * search.k <= kMostIvfProbedK &&
            lists * index.shape.d <= kMostIvfResiduals;
}

std::vector<IvfSweepIndex> drawIvfSweep(
        uint64_t seed,
        int cells,
        bool withSift) {
    Draw draw(seed);
    std::vector<IvfSweepIndex> indexes;
    for (int cell = 0; cell < cells;) {
        IvfSweepIndex index = drawIndex(draw, withSift);
        while (index.searches.size() < kSearches) {
            IvfSweepIndex::Search search;
            search.nprobe = int(draw.size(1, index.shape.nlist / 2));
            search.q = draw.size(1, kMostIvfQueries);
            search.k = int(draw.size(1, kMostIvfK));
            if (isIvfSweepSearch(index, search)) {
                search.cell = cell + int(index.searches.size());
                index.searches.push_back(search);
            }
        }
        index.searches.resize(std::min<size_t>(kSearches, cells - cell));
        cell += int(index.searches.size());
        indexes.push_back(std::move(index));
    }
    return indexes;
}

} // namespace faiss_bits::bench
