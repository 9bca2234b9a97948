#include <dlfcn.h>

#include <string>

#include <gtest/gtest.h>

#include "faiss_bits/dropin/FaissFunctions.h"

/// What the library is linked by. No device is needed.
namespace faiss_bits::test {
namespace {

// As `nm -D` shows them in libfaiss.so of FAISS 1.7.3 (int) and 1.15 (long).
const char* const kSymbols[] = {
        "_ZN5faiss3gpu14runBlockSelectERNS0_6TensorIfLi2ELb1EiNS0_6traits"
        "16DefaultPtrTraitsEEES5_RNS1_IiLi2ELb1EiS3_EEbiP11CUstream_st",
        "_ZN5faiss3gpu14runBlockSelectERNS0_6TensorIfLi2ELb1ElNS0_6traits"
        "16DefaultPtrTraitsEEES5_RNS1_IlLi2ELb1ElS3_EEbiP11CUstream_st",
        "_ZN5faiss3gpu18runBlockSelectPairERNS0_6TensorIfLi2ELb1EiNS0_6traits"
        "16DefaultPtrTraitsEEERNS1_IiLi2ELb1EiS3_EES5_S7_biP11CUstream_st",
        "_ZN5faiss3gpu18runBlockSelectPairERNS0_6TensorIfLi2ELb1ElNS0_6traits"
        "16DefaultPtrTraitsEEERNS1_IlLi2ELb1ElS3_EES5_S7_biP11CUstream_st",
        "_ZN5faiss3gpu14runL2SelectMinERNS0_6TensorIfLi2ELb1EiNS0_6traits"
        "16DefaultPtrTraitsEEERNS1_IfLi1ELb1EiS3_EES5_RNS1_IiLi2ELb1EiS3_EE"
        "iP11CUstream_st",
        "_ZN5faiss3gpu14runL2SelectMinERNS0_6TensorIfLi2ELb1ElNS0_6traits"
        "16DefaultPtrTraitsEEERNS1_IfLi1ELb1ElS3_EES5_RNS1_IlLi2ELb1ElS3_EE"
        "iP11CUstream_st",
        "_ZN5faiss3gpu13runL2DistanceEPNS0_12GpuResourcesEP11CUstream_stRNS0_6"
        "TensorIfLi2ELb1EiNS0_6traits16DefaultPtrTraitsEEEbPNS5_IfLi1ELb1EiS7_"
        "EES9_biS9_RNS5_IiLi2ELb1EiS7_EEb",
        "_ZN5faiss3gpu13runL2DistanceEPNS0_12GpuResourcesEP11CUstream_stRNS0_6"
        "TensorIfLi2ELb1ElNS0_6traits16DefaultPtrTraitsEEEbPNS5_IfLi1ELb1ElS7_"
        "EES9_biS9_RNS5_IlLi2ELb1ElS7_EEb",
        "_ZN5faiss3gpu13runIPDistanceEPNS0_12GpuResourcesEP11CUstream_stRNS0_6"
        "TensorIfLi2ELb1EiNS0_6traits16DefaultPtrTraitsEEEbS9_biS9_RNS5_IiLi2E"
        "Lb1EiS7_EE",
        "_ZN5faiss3gpu13runIPDistanceEPNS0_12GpuResourcesEP11CUstream_stRNS0_6"
        "TensorIfLi2ELb1ElNS0_6traits16DefaultPtrTraitsEEEbS9_biS9_RNS5_IlLi2E"
        "Lb1ElS7_EE",
        "_ZN5faiss3gpu21runIVFInterleavedScanERNS0_6TensorIfLi2ELb1EiNS0_6"
        "traits16DefaultPtrTraitsEEERNS1_IlLi2ELb1EiS3_EERNS0_12DeviceVectorIPv"
        "EESB_NS0_14IndicesOptionsERNS8_IiEEiNS_10MetricTypeEbRNS1_IfLi3ELb1EiS"
        "3_EEPNS0_18GpuScalarQuantizerES5_S7_PNS0_12GpuResourcesE",
        "_ZN5faiss3gpu21runIVFInterleavedScanERNS0_6TensorIfLi2ELb1ElNS0_6"
        "traits16DefaultPtrTraitsEEERNS1_IlLi2ELb1ElS3_EERNS0_12DeviceVectorIPv"
        "EESB_NS0_14IndicesOptionsERNS8_IlEEiNS_10MetricTypeEbRNS1_IfLi3ELb1ElS"
        "3_EEPNS0_18GpuScalarQuantizerES5_S7_PNS0_12GpuResourcesE",
        "_ZN5faiss3gpu14runIVFFlatScanERNS0_6TensorIfLi2ELb1EiNS0_6traits16Def"
        "aultPtrTraitsEEERNS1_IlLi2ELb1EiS3_EERNS0_12DeviceVectorIPvEESB_NS0_14"
        "IndicesOptionsERNS8_IiEEiiNS_10MetricTypeEbRNS1_IfLi3ELb1EiS3_EEPNS0_1"
        "8GpuScalarQuantizerES5_S7_PNS0_12GpuResourcesE",
        "_ZN5faiss3gpu14runIVFFlatScanERNS0_6TensorIfLi2ELb1ElNS0_6traits16Def"
        "aultPtrTraitsEEERNS1_IlLi2ELb1ElS3_EERNS0_12DeviceVectorIPvEESB_NS0_14"
        "IndicesOptionsERNS8_IlEEliNS_10MetricTypeEbRNS1_IfLi3ELb1ElS3_EEPNS0_1"
        "8GpuScalarQuantizerES5_S7_PNS0_12GpuResourcesE",
        "_ZN5faiss3gpu31runPQScanMultiPassNoPrecomputedIfEEvRNS0_6TensorIfLi2"
        "ELb1EiNS0_6traits16DefaultPtrTraitsEEERNS2_IT_Li2ELb1EiS4_EERNS2_IfL"
        "i3ELb1EiS4_EES6_RNS2_IlLi2ELb1EiS4_EEbbbiiiRNS0_12DeviceVectorIPvEES"
        "H_NS0_14IndicesOptionsERNSE_IiEEiiNS_10MetricTypeES6_SD_PNS0_12GpuRe"
        "sourcesE",
        "_ZN5faiss3gpu31runPQScanMultiPassNoPrecomputedIfEEvRNS0_6TensorIfLi2"
        "ELb1ElNS0_6traits16DefaultPtrTraitsEEERNS2_IT_Li2ELb1ElS4_EERNS2_IfL"
        "i3ELb1ElS4_EES6_RNS2_IlLi2ELb1ElS4_EEbbbiiiRNS0_12DeviceVectorIPvEES"
        "H_NS0_14IndicesOptionsERNSE_IlEEliNS_10MetricTypeES6_SD_PNS0_12GpuRe"
        "sourcesE",
        "_ZN5faiss3gpu5IVFPQ22runPQPrecomputedCodes_ERNS0_6TensorIfLi2ELb1EiN"
        "S0_6traits16DefaultPtrTraitsEEES6_RNS2_IlLi2ELb1EiS4_EEiS6_S8_",
        "_ZN5faiss3gpu5IVFPQ22runPQPrecomputedCodes_ERNS0_6TensorIfLi2ELb1ElN"
        "S0_6traits16DefaultPtrTraitsEEES6_RNS2_IlLi2ELb1ElS4_EEiS6_S8_",
};

TEST(DropinSymbols, AreThoseOfFaiss) {
    for (const char* symbol : kSymbols) {
        void* address = dlsym(RTLD_DEFAULT, symbol);
        ASSERT_NE(address, nullptr) << symbol;
        Dl_info info;
        ASSERT_NE(dladdr(address, &info), 0);
        EXPECT_NE(
                std::string(info.dli_fname).find("libfaiss_bits_dropin"),
                std::string::npos)
                << symbol << " is in " << info.dli_fname;
    }
}

TEST(DropinSymbols, LibraryBringsNoFaissAndNoCudaRuntime) {
    void* ours = dlopen("libfaiss_bits_dropin.so", RTLD_LAZY | RTLD_NOLOAD);
    ASSERT_NE(ours, nullptr);
    // Through its handle the library and all that it needs can be seen.
    EXPECT_EQ(dlsym(ours, "_ZN5faiss3gpu20StandardGpuResourcesC1Ev"), nullptr);
    EXPECT_EQ(dlsym(ours, "cudaMalloc"), nullptr);
    EXPECT_EQ(dlsym(ours, "cublasCreate_v2"), nullptr);
    EXPECT_NE(dlsym(ours, "faissBitsDropinInspect"), nullptr);
    dlclose(ours);
}

// What FAISS would end the process for goes to FAISS. There is none here.
TEST(DropinSymbols, SaysThatThereIsNoFaissToCall) {
    faiss::gpu::Matrix<float, int> keys{nullptr, {4, 1}, {1, 4}};
    faiss::gpu::Matrix<float, int> outKeys{nullptr, {2, 1}, {1, 2}};
    faiss::gpu::Matrix<int, int> outIds{nullptr, {2, 1}, {1, 2}};
    const auto messageFor = [&](int k) -> std::string {
        try {
            faiss::gpu::runBlockSelect(
                    keys, outKeys, outIds, false, k, nullptr);
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "no exception";
    };
    for (int k : {-1, 0, 1, 3, 2049}) {
        testing::internal::CaptureStderr();
        const std::string message = messageFor(k);
        const std::string said = testing::internal::GetCapturedStderr();
        EXPECT_NE(
                message.find("runBlockSelect (float keys, 32-bit ids)"),
                std::string::npos)
                << message;
        EXPECT_NE(message.find("no loaded library"), std::string::npos);
        EXPECT_NE(
                said.find("expected 1 x " + std::to_string(k)),
                std::string::npos)
                << said;
    }
}

TEST(DropinSymbols, SearchesSayThatThereIsNoFaissToCall) {
    faiss::gpu::Matrix<float, int64_t> vectors{nullptr, {4, 1}, {9000, 4}};
    faiss::gpu::Matrix<float, int64_t> queries{nullptr, {4, 1}, {3, 4}};
    faiss::gpu::Matrix<float, int64_t> distances{nullptr, {5, 1}, {3, 5}};
    faiss::gpu::Matrix<int64_t, int64_t> ids{nullptr, {5, 1}, {3, 5}};
    const auto saidFor = [&](int k) {
        testing::internal::CaptureStderr();
        EXPECT_THROW(
                faiss::gpu::runL2Distance(
                        nullptr,
                        nullptr,
                        vectors,
                        true,
                        nullptr,
                        queries,
                        true,
                        k,
                        distances,
                        ids,
                        false),
                std::runtime_error);
        EXPECT_THROW(
                faiss::gpu::runIPDistance(
                        nullptr,
                        nullptr,
                        vectors,
                        true,
                        queries,
                        true,
                        k,
                        distances,
                        ids),
                std::runtime_error);
        return testing::internal::GetCapturedStderr();
    };
    for (int k : {-1, 0, 4, 2049}) {
        const std::string text =
                "an output is 3 x 5, expected 3 x " + std::to_string(k);
        const std::string said = saidFor(k);
        for (const char* name : {"runL2Distance", "runIPDistance"}) {
            EXPECT_NE(
                    said.find(
                            std::string(name) +
                            " (float keys, 64-bit ids) goes to FAISS's own "
                            "function: " +
                            text),
                    std::string::npos)
                    << said;
        }
    }
    queries.size_[1] = 3;
    EXPECT_NE(
            saidFor(5).find("queries have 3 dimensions, vectors 4"),
            std::string::npos);
}

} // namespace
} // namespace faiss_bits::test
