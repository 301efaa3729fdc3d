/* Stands for CUDA's driver: devices with the names in FAKE_CUDA, separated by semicolons; of those, as many as CUDA_VISIBLE_DEVICES names. */
#include <stdlib.h>
#include <string.h>

static int words(const char* text, char mark) {
  int count = text == NULL || *text == '\0' ? 0 : 1;
  for (; text != NULL && *text != '\0'; ++text) count += *text == mark;
  return count;
}

int cuInit(unsigned flags) { return flags != 0 || getenv("FAKE_CUDA") == NULL ? 100 : 0; }

int cuDeviceGetCount(int* count) {
  *count = words(getenv("FAKE_CUDA"), ';');
  if (getenv("CUDA_VISIBLE_DEVICES") != NULL) {
    const int visible = words(getenv("CUDA_VISIBLE_DEVICES"), ',');
    if (visible < *count) *count = visible;
  }
  return 0;
}

int cuDeviceGet(int* device, int number) {
  *device = number;
  return 0;
}

int cuDeviceGetName(char* name, int length, int device) {
  const char* text = getenv("FAKE_CUDA");
  for (; device > 0; --device) text = strchr(text, ';') + 1;
  const size_t letters = strcspn(text, ";");
  if (letters >= (size_t)length) return 1;
  memcpy(name, text, letters);
  name[letters] = '\0';
  return 0;
}
