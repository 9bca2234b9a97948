#pragma once

#include "faiss_bits/ivf/GpuIndexBitsIVFScalarQuantizer.h"
#include "tests/ivf/CodedHarness.h"

/// What the tests of GpuIndexBitsIVFScalarQuantizer share.
namespace faiss_bits::test {

using faiss::ScalarQuantizer;
using gpu::GpuIndexBitsIVFScalarQuantizer;

using ScalarData = CodedData<
        faiss::IndexIVFScalarQuantizer,
        GpuIndexBitsIVFScalarQuantizer,
        faiss::gpu::GpuIndexIVFScalarQuantizerConfig>;

struct ScalarType {
    ScalarQuantizer::QuantizerType type;
    const char* name;
};

inline constexpr ScalarType kScalarTypes[] = {
        {ScalarQuantizer::QT_8bit, "QT_8bit"},
        {ScalarQuantizer::QT_8bit_uniform, "QT_8bit_uniform"},
        {ScalarQuantizer::QT_8bit_direct, "QT_8bit_direct"},
        {ScalarQuantizer::QT_4bit, "QT_4bit"},
        {ScalarQuantizer::QT_4bit_uniform, "QT_4bit_uniform"},
        {ScalarQuantizer::QT_6bit, "QT_6bit"},
        {ScalarQuantizer::QT_fp16, "QT_fp16"}};

inline std::unique_ptr<faiss::IndexIVFScalarQuantizer> trainedScalar(
        const IvfCase& c,
        ScalarQuantizer::QuantizerType type,
        bool byResidual,
        faiss::Index* quantizer) {
    constexpr int kTrained = 500;
    auto index = std::make_unique<faiss::IndexIVFScalarQuantizer>(
            quantizer, c.d, c.nlist, type, c.metric, byResidual);
    index->train(kTrained, makeVectors(kTrained, c.d, 77).data());
    return index;
}

/// codes: all bytes are below it.
inline ScalarData makeScalar(
        const IvfCase& c,
        ScalarQuantizer::QuantizerType type,
        bool byResidual,
        uint32_t codes = 256) {
    return ScalarData(
            c,
            [&](faiss::Index* quantizer) {
                return trainedScalar(c, type, byResidual, quantizer);
            },
            // The upper byte of a float16: finite, and of a common size.
            type == ScalarQuantizer::QT_fp16 ? std::min(codes, 64u) : codes);
}

} // namespace faiss_bits::test
