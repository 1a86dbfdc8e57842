#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void *leak_one_kib(void) {
    char *block = malloc(1024);
    memset(block, 1, 1024);
    return block;
}

char *copy_of_text(void) {
    char *copy = strdup("fifteen letters");
    copy[0] = 'F';
    return copy;
}

/* A buffer that the library keeps and makes larger at each call. */
static char *buffer;
static size_t length;
void append(size_t bytes) {
    buffer = realloc(buffer, length + bytes);
    memset(buffer + length, 1, bytes);
    length += bytes;
}

/* Keeps the last twelve blocks. */
static void *ring[12];
void keep_last(size_t turn) {
    free(ring[turn % 12]);
    ring[turn % 12] = malloc(300);
}

static void *work(void *argument) {
    free(argument);
    return malloc(77);
}

/* Every function that allocates, and frees everything. */
int use_all(void) {
    void *aligned = NULL;
    size_t huge = (size_t)-1 / 2;
    if (posix_memalign(&aligned, 256, 1000) != 0 || (size_t)aligned % 256 != 0) return 1;
    if (posix_memalign(&aligned, 3, 8) == 0) return 2;
    void *other = aligned_alloc(64, 640);
    if ((size_t)other % 64 != 0) return 3;
    char *zeros = calloc(10, 50);
    if (zeros[499] != 0 || calloc(*(volatile size_t *)&huge, 3) != NULL) return 4;
    char *resized = realloc(realloc(NULL, 10), 5000);
    resized = realloc(resized, 20);
    if (realloc(resized, *(volatile size_t *)&huge) != NULL) return 5;
    free(NULL);
    free(aligned);
    free(other);
    free(zeros);
    free(resized);
    free(realloc(malloc(30), 0));
    free(strdup("text"));
    DIR *folder = opendir("/");
    if (folder == NULL) return 6;
    while (readdir(folder) != NULL) {}
    closedir(folder);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, malloc(99));
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        free(result);
    }
    pid_t child = fork();
    if (child == 0) {
        void *block = malloc(2000);
        _exit(block == NULL);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 7;
    return 0;
}

/* Memory that malloc does not see. */
int map_pages(size_t bytes) {
    char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return 1;
    memset(pages, 1, bytes);
    return 0;
}
