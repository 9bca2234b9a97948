#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/common/CanonicalOracle.h"
#include "tests/common/HardVectors.h"

/// Inverted lists of codes of 8 bits, made at random, and searches of them by
/// the canonical distances of the decoded vectors.
namespace faiss_bits::test {

enum class Codes { OfComponents, Uniform, Direct, Product };

struct CodedCase {
    Codes codes = Codes::OfComponents;
    bool isL2 = true;
    bool interleaved = true;
    bool residual = true; ///< always so of product codes
    size_t version = 0;   ///< of faiss::gpu::kScalarRangesAt
    int64_t n = 2000;
    int numLists = 20;
    int64_t q = 3;
    int d = 24;
    int parts = 6; ///< Product
    int nprobe = 5;
    int k = 10;

    bool isProduct() const {
        return codes == Codes::Product;
    }
    bool hasBases() const {
        return residual || isProduct();
    }
    std::string describe() const {
        std::ostringstream text;
        text << "codes=" << int(codes) << (isL2 ? " L2" : " IP")
             << (interleaved ? " interleaved" : " rows")
             << (hasBases() ? " residual" : "") << " n=" << n
             << " lists=" << numLists << " q=" << q << " d=" << d
             << " nprobe=" << nprobe << " k=" << k;
        return text.str();
    }
};

/// What a case searches, on the host.
struct CodedModel {
    static constexpr int kCodes = 256;

    explicit CodedModel(const CodedCase& shape)
            : c(shape),
              codesOf(shape.isProduct() ? shape.parts : shape.d),
              queries(makeHard(Hard::Offset, shape.q, shape.d, 2)),
              lists(shape.numLists) {
        std::mt19937_64 random(7);
        std::uniform_real_distribution<float> uniform(-1, 1);
        for (int64_t i = 0; i < c.n; ++i) {
            const size_t list =
                    random() % 16 ? random() % size_t(c.numLists) : 0;
            lists[list % 3 == 2 ? list - 1 : list].push_back(i);
        }
        codes.resize(size_t(c.n) * codesOf);
        for (uint8_t& code : codes) {
            code = uint8_t(random() % kCodes);
        }
        const auto fill = [&](std::vector<float>& values, size_t count) {
            values.resize(count);
            for (float& value : values) {
                value = uniform(random);
            }
        };
        fill(trained, c.codes == Codes::Uniform ? 2 : 2 * size_t(c.d));
        fill(codebook, size_t(c.d) * kCodes);
        fill(centroids, size_t(c.numLists) * c.d);
        makeProbes(random);
    }

    /// The canonical result of a query.
    std::vector<Ranked> wanted(int64_t row) const {
        std::vector<float> x(size_t(c.d));
        std::vector<Ranked> candidates;
        for (int p = 0; p < c.nprobe; ++p) {
            const int64_t list = probes[size_t(row * c.nprobe + p)];
            if (list < 0) {
                continue;
            }
            const auto& members = lists[size_t(list)];
            for (size_t i = 0; i < members.size(); ++i) {
                for (int j = 0; j < c.d; ++j) {
                    x[size_t(j)] = decoded(members[i], j);
                    if (c.hasBases()) {
                        x[size_t(j)] += centroids[size_t(list) * c.d + j];
                    }
                }
                candidates.push_back(
                        {canonicalDistance(
                                 c.isL2 ? Metric::L2 : Metric::InnerProduct,
                                 0,
                                 queries.data() + row * c.d,
                                 x.data(),
                                 c.d),
                         list << 32 | int64_t(i)});
            }
        }
        return topK(candidates, c.k, !c.isL2);
    }

    const CodedCase c;
    const size_t codesOf;                    // a vector
    std::vector<float> queries;              // [q, d]
    std::vector<std::vector<int64_t>> lists; // numbers of vectors
    std::vector<uint8_t> codes;              // [n, codesOf]
    std::vector<float> trained;              // least, then range
    std::vector<float> codebook;             // [parts, codes, components]
    std::vector<float> centroids;            // [numLists, d]
    std::vector<int64_t> probes;             // [q, nprobe], -1: none

   private:
    /// Different lists in any order, and in places none.
    void makeProbes(std::mt19937_64& random) {
        std::vector<int64_t> order(size_t(c.numLists));
        std::iota(order.begin(), order.end(), 0);
        for (int64_t i = 0; i < c.q; ++i) {
            std::shuffle(order.begin(), order.end(), random);
            for (int p = 0; p < c.nprobe; ++p) {
                const bool isNone = random() % 9 == 0;
                probes.push_back(isNone ? -1 : order[size_t(p)]);
            }
        }
    }

    /// A component of a vector, each operation rounded.
    float decoded(int64_t vector, int j) const {
        if (c.isProduct()) {
            const int dims = c.d / c.parts;
            const int part = j / dims;
            const size_t code = codes[size_t(vector * c.parts + part)];
            return codebook[(part * kCodes + code) * dims + j % dims];
        }
        const float code = codes[size_t(vector * c.d + j)];
        if (c.codes == Codes::Direct) {
            return code;
        }
        const bool isUniform = c.codes == Codes::Uniform;
        const float least = trained[isUniform ? 0 : size_t(j)];
        const float range = trained[isUniform ? 1 : size_t(c.d + j)];
        const float inverse = 1.0f / 255.0f;
        const float step = range * inverse;
        return std::fma(code, step, std::fma(0.5f, step, least));
    }
};

} // namespace faiss_bits::test
