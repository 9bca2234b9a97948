#pragma once

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

} // namespace faiss_bits::test
