// What is not a whole capture of this program is refused with one line that names it.
#include "capture/reader.hpp"

#include <gmock/gmock.h>
#include <hdf5.h>

#include <functional>

#include "capture/page_journal.hpp"
#include "capture/support.hpp"
#include "core/error.hpp"
#include "core/mapped_file.hpp"

namespace quantmap {
namespace {

namespace fs = std::filesystem;
using testing::capture_job;
using testing::fresh_dir;
using ::testing::HasSubstr;
using testing::write_file;
using testing::write_tiny_model;

class CaptureReader : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ =
        fresh_dir(std::string("reader_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    write_tiny_model(dir_ / "model");
    checkpoint_.emplace(Checkpoint::open(dir_ / "model"));
    file_ = dir_ / "f.h5";
    run_capture(capture_job(*checkpoint_, file_));
  }
  void refused(const fs::path& path, const std::string& reason) {
    try {
      Capture::open(path);
      FAIL() << "read: " << path << ", wanted: " << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(reason));
      EXPECT_THAT(error.what(), HasSubstr(path.string()));
    }
  }
  // Opens the file for changing, with HDF5's own driver.
  void changed(const std::string& reason, const std::function<void(hid_t)>& change) {
    const fs::path copy = dir_ / "changed.h5";
    fs::copy_file(file_, copy, fs::copy_options::overwrite_existing);
    {
      const Hdf5Lock lock;
      const Hdf5Handle file(H5Fopen(copy.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
      ASSERT_TRUE(file);
      change(file.get());
    }
    refused(copy, reason);
  }
  void attribute(hid_t file, const char* object, const char* name, std::int64_t value) {
    const Hdf5Handle opened(H5Oopen(file, object, H5P_DEFAULT));
    ASSERT_TRUE(opened) << object;
    write_attribute(opened.get(), name, value, "changed.h5");
  }
  fs::path dir_, file_;
  std::optional<Checkpoint> checkpoint_;
};

TEST_F(CaptureReader, GivesBackWhatWasPutIn) {
  const Capture capture = Capture::open(file_);
  EXPECT_EQ(capture.info().ctx, 40);
  EXPECT_EQ(capture.info().windows, 3);
  EXPECT_EQ(capture.info().compute, Compute::f32);
  EXPECT_EQ(capture.info().model_sha256, checkpoint_->fingerprint());
  EXPECT_EQ(capture.config().hidden_size, 32);
  EXPECT_TRUE(capture.keeps_all_rows());
  const auto ids = testing::window_ids(120, 64);
  const auto second = capture.tokens(1);
  EXPECT_TRUE(std::equal(second.begin(), second.end(), ids.begin() + 40));
  EXPECT_TRUE(capture.has("model.layers.1.self_attn.v_proj input"));
  EXPECT_FALSE(capture.has("model.layers.2 output"));
  EXPECT_EQ(capture.width("model.layers.0.self_attn key"), 2 * 16);
  float value = 0;
  EXPECT_THROW(capture.read_rows("model.layers.2 output", 0, 0, 1, &value), Error);
  EXPECT_THROW(capture.read_rows("model.layers.0 output", 3, 0, 1, &value), Error);
  EXPECT_THROW(capture.read_rows("model.layers.0 output", 0, 40, 41, &value), Error);
  EXPECT_THROW(capture.tokens(-1), Error);
}

TEST_F(CaptureReader, RefusesWhatIsNoCapture) {
  refused(dir_ / "none.h5", "no such file");
  write_file(dir_ / "text.h5", "not at all");
  refused(dir_ / "text.h5", "not an HDF5 file");
  write_file(dir_ / "empty.h5", "");
  refused(dir_ / "empty.h5", "not an HDF5 file");
  write_file(dir_ / "signature.h5", "\x89HDF\r\n\x1a\n");
  refused(dir_ / "signature.h5", "it does not open");
  {
    const Hdf5Lock lock;
    const Hdf5Handle file(H5Fcreate((dir_ / "foreign.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_TRUE(file);
  }
  refused(dir_ / "foreign.h5", "not made by quantmap");
  refused(dir_, "not an HDF5 file");
}

// Cut at any length, it is refused when it is opened.
TEST_F(CaptureReader, RefusesAFileThatWasCutShort) {
  const std::string whole = read_text_file(file_);
  for (std::size_t size = 0; size < whole.size(); size += size < 200 ? 7 : whole.size() / 60) {
    write_file(dir_ / "cut.h5", whole.substr(0, size));
    EXPECT_THROW(Capture::open(dir_ / "cut.h5"), Error) << size;
  }
  write_file(dir_ / "cut.h5", whole.substr(0, whole.size() - 1));
  refused(dir_ / "cut.h5", "truncated file");
}

TEST_F(CaptureReader, RefusesOtherSchemasMarksAndShapes) {
  changed("made by a newer quantmap (expected schema 1 or less, found 2)",
          [&](hid_t file) { attribute(file, "/", "quantmap_schema", 2); });
  changed("schema 0", [&](hid_t file) { attribute(file, "/", "quantmap_schema", 0); });
  changed("not made by quantmap",
          [](hid_t file) { H5Adelete_by_name(file, "/", "quantmap_schema", H5P_DEFAULT); });
  changed("unfinished", [&](hid_t file) { attribute(file, "/", "complete", 0); });
  changed("dataset /kv/model.layers.0.self_attn/key is unfinished",
          [&](hid_t file) { attribute(file, "/kv/model.layers.0.self_attn/key", "complete", 0); });
  changed("/weights/model.norm.weight is unfinished",
          [](hid_t file) { H5Adelete_by_name(file, "/weights/model.norm.weight", "complete", H5P_DEFAULT); });
  changed("does not fit", [&](hid_t file) { attribute(file, "/", "windows", 4); });
  changed("does not fit", [&](hid_t file) { attribute(file, "/", "ctx", 41); });
  changed("tokens", [&](hid_t file) { attribute(file, "/", "ctx", std::int64_t{1} << 62); });
  changed("no attribute model_sha256",
          [](hid_t file) { H5Adelete_by_name(file, "/", "model_sha256", H5P_DEFAULT); });
  changed("no dataset /tokens", [](hid_t file) { H5Ldelete(file, "/tokens", H5P_DEFAULT); });
}

TEST_F(CaptureReader, RefusesAFileInTheMiddleOfACommitOrAtWork) {
  write_file(journal_path(file_), "left behind");
  refused(file_, "capture --resume finishes it");
  fs::remove(journal_path(file_));
  {
    const JournaledFile writing = JournaledFile::open(file_);
    refused(file_, "another process is writing it");
  }
  Capture::open(file_);
}

}  // namespace
}  // namespace quantmap
