#include "core/mapped_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "core/error.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

class Mapped : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, std::string_view text) const {
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return dir_ / name;
  }
  template <typename Body>
  static std::string line_of(ErrorKind kind, const Body& body) {
    try {
      body();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  const std::filesystem::path dir_ = testing::fresh_dir(
      std::string("mapped_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(Mapped, BytesAreTheFiles) {
  const std::string text("a\0b\nc", 5);
  const MappedFile mapped(file("five", text));
  EXPECT_EQ(mapped.text(), text);
  EXPECT_EQ(mapped.bytes().size(), 5U);
  EXPECT_EQ(mapped.name(), (dir_ / "five").string());
  EXPECT_EQ(read_text_file(dir_ / "five"), text);
}

TEST_F(Mapped, EmptyFilesAreEmpty) {
  const MappedFile mapped(file("empty", ""));
  EXPECT_EQ(mapped.text(), "");
  mapped.release(0, 100);
  EXPECT_EQ(read_text_file(dir_ / "empty"), "");
}

TEST_F(Mapped, MovedFromIsEmptyAndMovedToHoldsTheFile) {
  MappedFile first(file("first", "first")), second(file("second", "second"));
  MappedFile moved(std::move(first));
  EXPECT_EQ(moved.text(), "first");
  EXPECT_EQ(first.text(), "");  // NOLINT(bugprone-use-after-move): that is the law
  moved = std::move(second);
  EXPECT_EQ(moved.text(), "second");
  EXPECT_EQ(moved.name(), (dir_ / "second").string());
}

TEST_F(Mapped, ReleasedPagesReadTheSameAgain) {
  std::string text(100000, 'x');
  for (std::size_t i = 0; i < text.size(); i += 11) text[i] = static_cast<char>('a' + i % 26);
  const MappedFile mapped(file("pages", text));
  const std::pair<std::size_t, std::size_t> kRanges[] = {{0, 100000},     {1, 2},       {4095, 8193},
                                                         {99999, 100000}, {0, 1 << 30}, {200000, 300000},
                                                         {50000, 50000},  {60000, 100}};
  for (const auto& [begin, end] : kRanges) {
    mapped.release(begin, end);
    EXPECT_TRUE(mapped.text() == text) << begin << " " << end;
  }
}

TEST_F(Mapped, WhatIsNoFileIsRefusedByName) {
  EXPECT_NE(
      line_of(ErrorKind::input, [&] { MappedFile mapped(dir_ / "absent"); }).find("absent: No such file"),
      std::string::npos);
  EXPECT_NE(line_of(ErrorKind::input, [&] { MappedFile mapped(dir_); }).find("not a regular file"),
            std::string::npos);
  // A FIFO that nobody writes: an error, not a wait.
  ASSERT_EQ(::mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  EXPECT_NE(
      line_of(ErrorKind::input, [&] { MappedFile mapped(dir_ / "fifo"); }).find("fifo: not a regular file"),
      std::string::npos);
  EXPECT_EQ(line_of(ErrorKind::input, [&] { MappedFile mapped(dir_ / "two\nlines"); }).find('\n'),
            std::string::npos);
}

TEST_F(Mapped, AtomicWriteReplacesTheWholeFileAndLeavesNothingBeside) {
  const auto path = file("result", "something much longer than what comes");
  write_file_atomically(path, "short");
  EXPECT_EQ(read_text_file(path), "short");
  write_file_atomically(path, "");
  EXPECT_EQ(read_text_file(path), "");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 1);
}

TEST_F(Mapped, AMappedFileKeepsItsOldTextWhenReplaced) {
  const auto path = file("result", "old text");
  const MappedFile mapped(path);
  write_file_atomically(path, "new");
  EXPECT_EQ(mapped.text(), "old text");
}

TEST_F(Mapped, AWriteThatCannotBeIsAFailureByNameAndLeavesNothing) {
  const std::string line =
      line_of(ErrorKind::failed, [&] { write_file_atomically(dir_ / "absent/file", "x"); });
  EXPECT_NE(line.find("absent/file"), std::string::npos) << line;
  // The target is a folder that holds something: the rename fails after the text was written beside it.
  std::filesystem::create_directories(dir_ / "folder/inside");
  EXPECT_NE(line_of(ErrorKind::failed, [&] { write_file_atomically(dir_ / "folder", "x"); }).find("folder"),
            std::string::npos);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 1);
}

}  // namespace
}  // namespace quantmap
