#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <random>
#include <vector>

#include "kernels/ivf/IvfLists.h"

/// Lists, and searches of them, for tests of kernels/ivf without FAISS.
namespace faiss_bits::test {

/// Values of vectors, queries, ranges and codebooks.
enum class ListFill {
    Uniform,
    Integers,   ///< few: many distances are equal
    Equal,      ///< all the same
    Duplicates, ///< one vector in most places
    Offset,     ///< 1e4 and a unit
    Tiny,       ///< 1e-30
    Small,      ///< squares are subnormal
    Huge,       ///< 1e18: squares are near the end of float32
    Mixed,      ///< vectors of every size
    Strided,    ///< near zero every 512th, else around 8
    FarList,    ///< as Uniform, but of a seed in eight 1e6 times as long
    NotFinite   ///< some infinite or NaN
};

/// How a filter says what it lets pass.
enum class KernelFilter {
    Words,  ///< IvfLists::selectedBits
    IdBits, ///< IvfLists::idTest, of direct searches; ids below 2^31
    IdRange ///< the same; a part of 1 selects from a third of the ids on
};

struct KernelCase {
    Metric metric = Metric::L2;
    int d = 33;
    ListCoding coding = ListCoding::Float32;
    ListLayout layout = ListLayout::Interleaved;
    bool isResidual = false;
    std::vector<int> lengths; ///< of lists
    idx_t q = 20;
    int nprobe = 16;
    int k = 3;
    ListFill fill = ListFill::Uniform;
    int numParts = 1; ///< Product
    int partBits = 8; ///< Product
    ListIds idKind = ListIds::Given64;
    bool lengths64 = true;
    double selected = 1; ///< the part that a filter lets pass; 1: no filter
    KernelFilter filter = KernelFilter::Words;
    bool inverted = false;   ///< the set of a test of ids: what does not pass
    int listShift = 0;       ///< bytes behind 256 where lists begin
    bool evenWords = false;  ///< words of the filter at list * wordsOfList
    int multiprocessors = 0; ///< that grids are made for; 0: the device's
    uint32_t seed = 1;
};

inline std::ostream& operator<<(std::ostream& out, const KernelCase& c) {
    return out << (c.metric == Metric::L2 ? "L2" : "IP") << " d=" << c.d
               << " coding=" << int(c.coding)
               << (c.layout == ListLayout::Rows ? " rows" : " interleaved")
               << (c.isResidual ? " residual" : "")
               << " lists=" << c.lengths.size() << " q=" << c.q
               << " nprobe=" << c.nprobe << " k=" << c.k
               << " fill=" << int(c.fill) << " parts=" << c.numParts << "x"
               << c.partBits << " ids=" << int(c.idKind)
               << " selected=" << c.selected << " shift=" << c.listShift
               << " multiprocessors=" << c.multiprocessors
               << " seed=" << c.seed;
}

/// Of `lists` lists: two thirds of `most` or more, some 0.
inline std::vector<int> unevenLengths(int lists, int most, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<int> lengths(lists);
    for (int& one : lengths) {
        one = random() % 10 == 0 ? 0 : most - int(random() % (most / 3));
    }
    lengths[0] = 0;
    lengths[lists / 2] = most;
    return lengths;
}

/// Vectors [n, d].
inline std::vector<float> fillRows(
        ListFill fill,
        idx_t n,
        int d,
        uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> unit(-1, 1);
    std::vector<float> rows(size_t(n) * d);
    for (idx_t i = 0; i < n; ++i) {
        const float size = std::ldexp(1.0f, int(random() % 160) - 100);
        const bool isOdd = random() % 10 == 0;
        float* row = rows.data() + i * d;
        for (int c = 0; c < d; ++c) {
            const float any = unit(random);
            switch (fill) {
                case ListFill::Uniform:
                case ListFill::NotFinite:
                    row[c] = any;
                    break;
                case ListFill::Integers:
                    row[c] = float(int(random() % 5) - 2);
                    break;
                case ListFill::Equal:
                    row[c] = 0.25f;
                    break;
                case ListFill::Duplicates:
                    row[c] = isOdd ? any : 0.3f;
                    break;
                case ListFill::Offset:
                    row[c] = 1e4f + any;
                    break;
                case ListFill::Tiny:
                    row[c] = 1e-30f * any;
                    break;
                case ListFill::Small:
                    row[c] = 1e-21f * any;
                    break;
                case ListFill::Huge:
                    row[c] = 1e18f * any;
                    break;
                case ListFill::Mixed:
                    row[c] = size * any;
                    break;
                case ListFill::FarList:
                    row[c] = seed % 8 == 7 ? 1e6f * any : any;
                    break;
                case ListFill::Strided:
                    row[c] = i % 512 == 7 ? 0.01f * any : 8 + any;
                    break;
            }
        }
        if (fill == ListFill::NotFinite && isOdd) {
            const float odd[] = {
                    HUGE_VALF, -HUGE_VALF, std::nanf(""), 3e38f, -2e19f};
            row[random() % d] = odd[random() % 5];
        }
    }
    return rows;
}

/// Which of the ways by estimates.
enum class EstimateMode {
    All, ///< lower bounds of all lists
    Near ///< a limit from near lists, and then what is within it
};

struct KernelResult {
    std::vector<float> distances;
    std::vector<int64_t> ids;
    idx_t lost = 0;   ///< queries that were searched again
    idx_t scored = 0; ///< candidates of the last queries that came at a time

    bool sameAs(const KernelResult& other) const {
        return ids == other.ids &&
                std::memcmp(
                        distances.data(),
                        other.distances.data(),
                        distances.size() * sizeof(float)) == 0;
    }
};

} // namespace faiss_bits::test
