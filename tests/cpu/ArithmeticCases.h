#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cpu/CpuHarness.h"

/// What certified searches of every arithmetic are tested with. choicesOf: the
/// choices of a variant that are forced to it.
namespace faiss_bits::test {

/// Variants that pack their rows.
inline constexpr cpu::Variant kPacked[] = {
        cpu::Variant::Auto,
        cpu::Variant::Buffered,
        cpu::Variant::Var1,
        cpu::Variant::Var5,
        cpu::Variant::Var6};

inline CpuCase certifiedCase(Metric metric) {
    CpuCase c;
    c.mode = SearchMode::Certified;
    c.metric = metric;
    return c;
}

/// dims: eight numbers of dimensions, that take turns.
template <class ChoicesOf>
void checkEveryContents(
        Metric metric,
        const std::vector<int>& dims,
        const ChoicesOf& choicesOf) {
    int step = 0;
    for (const Contents contents : kAllContents) {
        for (const int64_t k : {1, 10, 100, 500}) {
            CpuCase c = certifiedCase(metric);
            c.contents = contents;
            c.q = std::vector<int64_t>{3, 14, 1, 29}[step % 4];
            c.n = k >= 100 ? 400 : 150;
            c.d = dims.at(step % 8);
            c.k = k;
            c.vectorGap = step % 3;
            c.pickQueries = step % 4 == 1;
            c.pickVectors = step % 3 == 1;
            c.repeatVectors = step % 2;
            c.seed = ++step;
            const CpuData<float> data(c);
            const CpuResult<float> expected = data.canonicalResult();
            int threads = 1;
            for (const cpu::Variant variant : kPacked) {
                for (const cpu::Choice& choice : choicesOf(variant)) {
                    SCOPED_TRACE(describe(choice, threads));
                    ASSERT_TRUE(data.checkCanonical(
                            data.run(choice, threads), expected));
                    threads = threads % 4 + 1;
                }
            }
        }
    }
}

/// Two to 26 queries of d dimensions.
template <class ChoicesOf>
void checkDimensions(Metric metric, int d, const ChoicesOf& choicesOf) {
    CpuCase c = certifiedCase(metric);
    c.contents = d % 3 ? Contents::Uniform : Contents::Far;
    c.q = 2 + d % 25;
    c.n = 200;
    c.d = d;
    c.seed = uint32_t(d);
    const CpuData<float> data(c);
    const CpuResult<float> expected = data.canonicalResult();
    for (const cpu::Choice& choice : choicesOf(cpu::Variant::Buffered)) {
        SCOPED_TRACE(describe(choice, 1));
        ASSERT_TRUE(data.checkCanonical(data.run(choice, 1), expected));
    }
}

/// 60 queries, in blocks of one to more than all.
template <class ChoicesOf>
void checkBlocks(Metric metric, int d, int64_t k, const ChoicesOf& choicesOf) {
    CpuCase c = certifiedCase(metric);
    c.contents = Contents::Uniform;
    c.q = 60;
    c.n = 700;
    c.d = d;
    c.k = k;
    const CpuData<float> data(c);
    const CpuResult<float> expected = data.canonicalResult();
    for (const cpu::Variant variant : kPacked) {
        for (cpu::Choice choice : choicesOf(variant)) {
            for (const int block : {1, 2, 16, 39, 100}) {
                choice.queryBlock = block;
                choice.vectorBlock = 2 * block;
                choice.depthBlock = block;
                SCOPED_TRACE(describe(choice, 3));
                ASSERT_TRUE(data.checkCanonical(data.run(choice, 3), expected));
            }
        }
    }
}

/// One vector, and one query, that integers cannot stand for, or that are far
/// longer or shorter than all others, among many that are as usual.
template <class ChoicesOf>
void checkOneUnlikeTheOthers(Metric metric, const ChoicesOf& choicesOf) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const float value :
         {infinity,
          -infinity,
          std::numeric_limits<float>::quiet_NaN(),
          3e38f,
          1e20f,
          0x1p60f,
          0x1p59f,
          1e9f,
          -1e5f,
          1e-17f,
          0x1p-60f,
          0x1p-61f,
          1e-30f,
          1e-44f,
          0.0f}) {
        for (const bool whole : {false, true}) {
            CpuCase c = certifiedCase(metric);
            c.contents = Contents::Uniform;
            c.q = 30;
            c.n = 300;
            c.d = 20;
            const CpuData<float> data(c);
            auto problem = data.problem({}, 2);
            std::vector<float> vectors = data.vectors().values;
            std::vector<float> queries = data.queries().values;
            for (float* row : {&vectors[7 * c.d], &queries[9 * c.d]}) {
                std::fill(row, row + (whole ? c.d : 1), value);
            }
            problem.vectors = vectors.data();
            problem.queries = queries.data();
            problem.choice.arithmetic = cpu::Arithmetic::Components;
            const auto expected = CpuData<float>::run(problem);
            for (const cpu::Choice& choice : choicesOf(cpu::Variant::Auto)) {
                problem.choice = choice;
                ASSERT_TRUE(CpuData<float>::run(problem) == expected)
                        << value << (whole ? " whole " : " one ")
                        << choice.target;
            }
        }
    }
}

} // namespace faiss_bits::test
