#include "kernels/words/Pivots.h"

#include <algorithm>
#include <memory>

#include "kernels/words/cpu/QueryPattern.h"

namespace faiss_bits::words {

namespace {

/// The distances of all words, by place, to one of them.
std::vector<uint16_t> distancesTo(
        const Dictionary& dictionary,
        const WordGroups& groups,
        uint32_t place,
        std::vector<std::unique_ptr<cpu::QueryPattern>>& patterns,
        const WordOptions& options) {
    std::vector<uint16_t> out(size_t(dictionary.size()));
    for (auto& pattern : patterns) {
        pattern->set(
                dictionary.sorted.word(place), dictionary.sorted.length(place));
    }
    constexpr uint32_t kPart = 64;
    forAll(options,
           (groups.count() + kPart - 1) / kPart,
           [&](int64_t part, int thread) {
               const uint32_t first = uint32_t(part) * kPart;
               const uint32_t end = std::min(first + kPart, groups.count());
               uint32_t distances[WordGroups::kSize];
               for (uint32_t group = first; group < end; ++group) {
                   patterns[size_t(thread)]->distances(
                           groups, group, distances);
                   for (uint32_t i = 0; i < groups.words(group); ++i) {
                       out[groups.places(group)[i]] =
                               uint16_t(std::min(distances[i], 0xFFFFu));
                   }
               }
           });
    if (options.stats) {
        options.stats->distances += uint64_t(dictionary.size());
    }
    return out;
}

} // namespace

Pivots makePivots(const Dictionary& dictionary, const WordOptions& options) {
    Pivots out;
    const idx_t n = dictionary.size();
    if (n == 0) {
        return out;
    }
    const WordGroups groups = WordGroups::byLength(dictionary);
    std::vector<std::unique_ptr<cpu::QueryPattern>> patterns;
    for (int i = 0; i < options.workers(); ++i) {
        patterns.push_back(std::make_unique<cpu::QueryPattern>(dictionary));
    }
    std::vector<uint32_t> placeOf(static_cast<size_t>(n));
    for (idx_t place = 0; place < n; ++place) {
        placeOf[dictionary.ids[size_t(place)]] = uint32_t(place);
    }
    const double apart = Pivots::kAlpha * dictionary.longest;
    std::vector<uint16_t> nearest(size_t(n), 0xFFFF); // to any pivot
    std::vector<std::vector<uint16_t>> rows;
    for (idx_t id = 0; id < n && out.count() < Pivots::kMost; ++id) {
        const uint32_t place = placeOf[size_t(id)];
        // A word that is a pivot already is not another.
        if (id > 0 && (nearest[place] < apart || nearest[place] == 0)) {
            continue;
        }
        out.places.push_back(place);
        rows.push_back(
                distancesTo(dictionary, groups, place, patterns, options));
        for (idx_t i = 0; i < n; ++i) {
            nearest[size_t(i)] =
                    std::min(nearest[size_t(i)], rows.back()[size_t(i)]);
        }
    }
    const idx_t blocks = (n + Pivots::kBlock - 1) / Pivots::kBlock;
    out.distances.resize(size_t(blocks) * rows.size() * Pivots::kBlock);
    for (size_t pivot = 0; pivot < rows.size(); ++pivot) {
        for (idx_t place = 0; place < n; ++place) {
            const size_t block = size_t(place) / Pivots::kBlock;
            out.distances
                    [(block * rows.size() + pivot) * Pivots::kBlock +
                     size_t(place) % Pivots::kBlock] =
                    rows[pivot][size_t(place)];
        }
    }
    for (size_t first = 0; first < out.places.size();
         first += WordGroups::kSize) {
        out.pivots.add(
                dictionary,
                out.places.data() + first,
                uint32_t(std::min<size_t>(
                        WordGroups::kSize, out.places.size() - first)));
    }
    return out;
}

static_assert(Pivots::kBlock == cpu::kPivotBlock);

} // namespace faiss_bits::words
