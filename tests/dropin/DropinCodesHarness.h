#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/dropin/CodedModel.h"
#include "tests/dropin/DropinTensors.h"
#include "tests/dropin/SomeRows.h"

/// Calls FAISS's scans of lists of codes of 8 bits, as the drop-in library
/// defines them, with both kinds of lengths, and holds the result against the
/// canonical one of the decoded vectors. What is left to FAISS throws, as there
/// is none.
namespace faiss_bits::test {

/// What of a call is not as in a FAISS that we know, or as we have kernels for.
enum class Wrong {
    Nothing,
    Dimensions,  ///< of the quantizer
    Bits,        ///< of its codes
    CodeSize,    ///< of its vectors
    Trained,     ///< ranges on the host
    Ranges,      ///< ranges on the device
    Memory,      ///< of those
    Type,        ///< one that has no kernels
    Bases,       ///< for fewer probes
    Codebook,    ///< of other dimensions
    Centroids,   ///< of fewer lists
    BitsOfCodes, ///< of product codes
};

template <class Index>
class CodedLists {
   public:
    static constexpr int kOutputByte = 0xA5;
    static constexpr int kGroup = 32;
    static constexpr int kCodes = CodedModel::kCodes;

    explicit CodedLists(const CodedCase& c)
            : model_(c),
              deviceQueries_(model_.queries),
              outDistances_(c.q * c.k, kOutputByte),
              outIds_(c.q * c.k, kOutputByte) {
        upload();
    }

    /// Waits only as far as the function does. Throws what is left to FAISS.
    void call(Wrong wrong = Wrong::Nothing) {
        const CodedCase& c = model_.c;
        auto data = arrayOf<void*>(codePointers_, c.numLists, resources_);
        auto ids = arrayOf<void*>(codePointers_, c.numLists, resources_);
        auto lengths = arrayOf<Index>(lengths_, c.numLists, resources_);
        auto queries = matrixOf<Index>(deviceQueries_.data(), c.q, c.d);
        auto probes = matrixOf<Index>(deviceProbes_.data(), c.q, c.nprobe);
        auto distances = matrixOf<Index>(outDistances_.data(), c.q, c.k);
        auto outIds = matrixOf<Index>(outIds_.data(), c.q, c.k);
        const auto metric =
                c.isL2 ? faiss::METRIC_L2 : faiss::METRIC_INNER_PRODUCT;
        if (c.isProduct()) {
            auto centroids = matrixOf<Index>(
                    deviceCentroids_.data(),
                    c.numLists - (wrong == Wrong::Centroids),
                    c.d);
            auto codebook =
                    cubeOf(deviceCodebook_.data(),
                           c.parts,
                           c.d / c.parts + (wrong == Wrong::Codebook),
                           kCodes);
            // Nothing of it is to be read.
            auto listDistances = matrixOf<Index, float>(nullptr, c.q, c.nprobe);
            const int bits = wrong == Wrong::BitsOfCodes ? 7 : 8;
            faiss::gpu::runPQScanMultiPassNoPrecomputed<float>(
                    queries,
                    centroids,
                    codebook,
                    listDistances,
                    probes,
                    false,
                    false,
                    c.interleaved,
                    bits,
                    c.parts,
                    kCodes,
                    data,
                    ids,
                    faiss::gpu::INDICES_IVF,
                    lengths,
                    Index(model_.lists[0].size()),
                    c.k,
                    metric,
                    distances,
                    outIds,
                    &resources_);
            return;
        }
        const auto quantizer = quantizerOf(wrong);
        auto* scalarQ = reinterpret_cast<faiss::gpu::GpuScalarQuantizer*>(
                const_cast<unsigned char*>(quantizer.data()));
        auto bases =
                cubeOf(deviceBases_.data(),
                       c.q,
                       c.nprobe - (wrong == Wrong::Bases),
                       c.d);
        if (c.interleaved) {
            faiss::gpu::runIVFInterleavedScan(
                    queries,
                    probes,
                    data,
                    ids,
                    faiss::gpu::INDICES_IVF,
                    lengths,
                    c.k,
                    metric,
                    c.residual,
                    bases,
                    scalarQ,
                    distances,
                    outIds,
                    &resources_);
        } else {
            faiss::gpu::runIVFFlatScan(
                    queries,
                    probes,
                    data,
                    ids,
                    faiss::gpu::INDICES_IVF,
                    lengths,
                    Index(model_.lists[0].size()),
                    c.k,
                    metric,
                    c.residual,
                    bases,
                    scalarQ,
                    distances,
                    outIds,
                    &resources_);
        }
    }

    ::testing::AssertionResult check() {
        return someRowsAreCanonical(
                model_.c,
                outDistances_.download(),
                outIds_.download(),
                [&](int64_t row) { return model_.wanted(row); });
    }

    /// Whether nothing was written.
    bool isUntouched() {
        const auto ids = outIds_.download();
        return std::all_of(ids.begin(), ids.end(), [](int64_t id) {
            return uint64_t(id) == 0xA5A5A5A5A5A5A5A5;
        });
    }

   private:
    static faiss::gpu::Cube<float, Index> cubeOf(
            float* data,
            int64_t a,
            int64_t b,
            int64_t c) {
        return {data,
                {Index(b * c), Index(c), 1},
                {Index(a), Index(b), Index(c)}};
    }

    /// In memory, as FAISS has it.
    std::vector<unsigned char> quantizerOf(Wrong wrong) {
        using namespace faiss::gpu;
        const CodedCase& c = model_.c;
        ScalarQuantizerMemory q = {};
        ScalarRangesMemory<Index> ranges = {};
        q.d_ = size_t(c.d) + (wrong == Wrong::Dimensions);
        q.codeSize_ = size_t(c.d) + (wrong == Wrong::CodeSize);
        q.type_ = wrong == Wrong::Type      ? 7
                : c.codes == Codes::Direct  ? SCALAR_8BIT_DIRECT
                : c.codes == Codes::Uniform ? SCALAR_8BIT_UNIFORM
                                            : SCALAR_8BIT;
        q.bits_ = wrong == Wrong::Bits ? 6 : 8;
        if (c.codes != Codes::Direct) {
            q.trainedBegin_ = model_.trained.data();
            q.trainedEnd_ = model_.trained.data() + model_.trained.size() -
                    (wrong == Wrong::Trained);
            q.trainedCapacity_ = model_.trained.data() + model_.trained.size();
            ranges.gpuTrained_ = {
                    deviceTrained_.data(),
                    {1},
                    {Index(model_.trained.size() - (wrong == Wrong::Ranges))}};
            ranges.gpuTrainedMemory_ = {
                    wrong == Wrong::Memory ? nullptr : &resources_,
                    0,
                    nullptr,
                    deviceTrained_.data(),
                    model_.trained.size() * sizeof(float)};
        }
        const size_t at = kScalarRangesAt[c.version];
        // With room for what a look at the wrong place reads.
        std::vector<unsigned char> memory(
                kScalarRangesAt[2] + sizeof(ranges), 0xA5);
        std::memcpy(memory.data(), &q, sizeof(q));
        std::memcpy(memory.data() + at, &ranges, sizeof(ranges));
        return memory;
    }

    void upload() {
        const CodedCase& c = model_.c;
        std::vector<void*> pointers;
        std::vector<Index> lengths;
        for (const auto& list : model_.lists) {
            const size_t padded = (list.size() + kGroup - 1) / kGroup * kGroup;
            std::vector<uint8_t> bytes(padded * model_.codesOf, 0xEE);
            for (size_t i = 0; i < list.size(); ++i) {
                for (size_t j = 0; j < model_.codesOf; ++j) {
                    const size_t place = c.interleaved
                            ? (i / kGroup * model_.codesOf + j) * kGroup +
                                    i % kGroup
                            : i * model_.codesOf + j;
                    bytes[place] =
                            model_.codes[size_t(list[i]) * model_.codesOf + j];
                }
            }
            codeBuffers_.emplace_back(bytes);
            pointers.push_back(
                    list.empty() ? nullptr : codeBuffers_.back().data());
            lengths.push_back(Index(list.size()));
        }
        codePointers_ = DeviceBuffer<void*>(pointers);
        lengths_ = DeviceBuffer<Index>(lengths);
        deviceProbes_ = DeviceBuffer<int64_t>(model_.probes);
        deviceTrained_ = DeviceBuffer<float>(model_.trained);
        deviceCentroids_ = DeviceBuffer<float>(model_.centroids);
        uploadCodebook();
        uploadBases();
    }

    /// Codes innermost, as FAISS's scan is given it.
    void uploadCodebook() {
        const CodedCase& c = model_.c;
        const int dims = c.isProduct() ? c.d / c.parts : c.d;
        std::vector<float> innermost(model_.codebook.size());
        for (size_t i = 0; i < model_.codebook.size(); ++i) {
            const size_t component = i % dims;
            const size_t code = i / dims % kCodes;
            const size_t part = i / dims / kCodes;
            innermost[(part * dims + component) * kCodes + code] =
                    model_.codebook[i];
        }
        deviceCodebook_ = DeviceBuffer<float>(innermost);
    }

    /// NaN where there is no list, as FAISS has it.
    void uploadBases() {
        const CodedCase& c = model_.c;
        std::vector<float> bases;
        for (int64_t list : model_.probes) {
            for (int j = 0; j < c.d; ++j) {
                bases.push_back(
                        list < 0 ? std::nanf("")
                                 : model_.centroids[size_t(list) * c.d + j]);
            }
        }
        deviceBases_ = DeviceBuffer<float>(bases);
    }

    const CodedModel model_;
    faiss::gpu::GpuResources resources_;
    std::vector<DeviceBuffer<uint8_t>> codeBuffers_;
    DeviceBuffer<void*> codePointers_;
    DeviceBuffer<Index> lengths_;
    DeviceBuffer<int64_t> deviceProbes_;
    DeviceBuffer<float> deviceTrained_;
    DeviceBuffer<float> deviceCentroids_;
    DeviceBuffer<float> deviceCodebook_;
    DeviceBuffer<float> deviceBases_;
    DeviceBuffer<float> deviceQueries_;
    DeviceBuffer<float> outDistances_;
    DeviceBuffer<int64_t> outIds_;
};

} // namespace faiss_bits::test
