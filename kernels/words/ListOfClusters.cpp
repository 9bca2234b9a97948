#include "kernels/words/ListOfClusters.h"

#include <algorithm>
#include <memory>
#include <random>

#include "kernels/words/cpu/QueryPattern.h"

namespace faiss_bits::words {

namespace {

/// The words that are in no bucket yet.
class Remaining {
   public:
    Remaining(const Dictionary& dictionary, const WordOptions& options)
            : dictionary_(dictionary),
              options_(options),
              groups_(WordGroups::byLength(dictionary)),
              sums_(size_t(dictionary.size())),
              isTaken_(size_t(dictionary.size())),
              left_(dictionary.size()) {
        for (int i = 0; i < options.workers(); ++i) {
            patterns_.push_back(
                    std::make_unique<cpu::QueryPattern>(dictionary));
        }
        counts_.resize(size_t(dictionary.longest) + 1);
    }

    idx_t left() const {
        return left_;
    }

    void take(uint32_t place) {
        isTaken_[place] = 1;
        --left_;
    }

    /// Finds the distances of all that are left to a center, and adds them up.
    void measure(uint32_t center) {
        dropTaken();
        distances_.resize(size_t(groups_.count()) * WordGroups::kSize);
        constexpr uint32_t kPart = 64;
        const int parts = int((groups_.count() + kPart - 1) / kPart);
        const LetterWords& words = dictionary_.sorted;
        for (auto& pattern : patterns_) {
            pattern->set(words.word(center), words.length(center));
        }
        faiss_bits::words::forAll(
                options_, parts, [&](int64_t part, int thread) {
                    const uint32_t first = uint32_t(part) * kPart;
                    const uint32_t end =
                            std::min(first + kPart, groups_.count());
                    for (uint32_t group = first; group < end; ++group) {
                        uint32_t* to = &distances_[group * WordGroups::kSize];
                        patterns_[size_t(thread)]->distances(
                                groups_, group, to);
                        for (uint32_t i = 0; i < groups_.words(group); ++i) {
                            sums_[groups_.places(group)[i]] += to[i];
                        }
                    }
                });
        if (options_.stats) {
            options_.stats->distances += uint64_t(left_);
        }
    }

    /// The words nearest to the center that was measured, and their greatest
    /// distance; takes them.
    std::vector<uint32_t> takeNearest(uint32_t most, uint32_t& radius) {
        std::fill(counts_.begin(), counts_.end(), 0u);
        forEach([&](uint32_t, uint32_t distance) { ++counts_[distance]; });
        uint32_t below = 0, limit = 0; // all below the limit are taken
        while (limit + 1 < counts_.size() && below + counts_[limit] < most) {
            below += counts_[limit++];
        }
        uint32_t atLimit = most - below;
        std::vector<uint32_t> places;
        radius = 0;
        forEach([&](uint32_t place, uint32_t distance) {
            if (distance > limit || (distance == limit && atLimit == 0)) {
                return;
            }
            atLimit -= distance == limit;
            places.push_back(place);
            radius = std::max(radius, distance);
        });
        for (const uint32_t place : places) {
            take(place);
        }
        return places;
    }

    /// The word that is farthest from all centers together.
    uint32_t farthest() const {
        uint32_t best = WordGroups::kNoWord;
        forEach([&](uint32_t place, uint32_t) {
            if (best == WordGroups::kNoWord || sums_[place] > sums_[best]) {
                best = place;
            }
        });
        return best;
    }

   private:
    /// body(place, distance) of all that are left.
    template <class Body>
    void forEach(const Body& body) const {
        for (uint32_t group = 0; group < groups_.count(); ++group) {
            for (uint32_t i = 0; i < groups_.words(group); ++i) {
                const uint32_t place = groups_.places(group)[i];
                if (!isTaken_[place]) {
                    body(place, distances_[group * WordGroups::kSize + i]);
                }
            }
        }
    }

    /// Groups without those that are taken, once these are a fifth.
    void dropTaken() {
        if (left_ * 5 > idx_t(groups_.count()) * WordGroups::kSize * 4) {
            return;
        }
        std::vector<uint32_t> places;
        for (uint32_t group = 0; group < groups_.count(); ++group) {
            for (uint32_t i = 0; i < groups_.words(group); ++i) {
                if (!isTaken_[groups_.places(group)[i]]) {
                    places.push_back(groups_.places(group)[i]);
                }
            }
        }
        groups_.clear();
        for (size_t first = 0; first < places.size();
             first += WordGroups::kSize) {
            groups_.add(
                    dictionary_,
                    places.data() + first,
                    uint32_t(std::min<size_t>(
                            WordGroups::kSize, places.size() - first)));
        }
    }

    const Dictionary& dictionary_;
    const WordOptions& options_;
    WordGroups groups_;
    std::vector<uint64_t> sums_; // by place
    std::vector<uint8_t> isTaken_;
    idx_t left_;
    std::vector<uint32_t> distances_; // by group
    std::vector<uint32_t> counts_;    // by distance
    std::vector<std::unique_ptr<cpu::QueryPattern>> patterns_;
};

} // namespace

ListOfClusters makeListOfClusters(
        const Dictionary& dictionary,
        const WordOptions& options) {
    ListOfClusters out;
    if (dictionary.size() == 0) {
        return out;
    }
    Remaining remaining(dictionary, options);
    std::mt19937 random(2012);
    auto center = uint32_t(random() % uint32_t(dictionary.size()));
    std::vector<uint32_t> centers;
    while (true) {
        remaining.take(center);
        centers.push_back(center);
        remaining.measure(center);
        uint32_t radius = 0;
        const std::vector<uint32_t> bucket =
                remaining.takeNearest(ListOfClusters::kBucket, radius);
        out.radii.push_back(radius);
        for (uint32_t i = 0; i < ListOfClusters::kBucketGroups; ++i) {
            const uint32_t first = i * WordGroups::kSize;
            const auto size = uint32_t(bucket.size());
            out.buckets.add(
                    dictionary,
                    bucket.data() + std::min(first, size),
                    std::min(WordGroups::kSize, size - std::min(first, size)));
        }
        if (remaining.left() == 0) {
            break;
        }
        center = remaining.farthest();
    }
    for (size_t first = 0; first < centers.size(); first += WordGroups::kSize) {
        out.centers.add(
                dictionary,
                centers.data() + first,
                uint32_t(std::min<size_t>(
                        WordGroups::kSize, centers.size() - first)));
    }
    return out;
}

} // namespace faiss_bits::words
