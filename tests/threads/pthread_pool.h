/* A pool of POSIX threads behind struct tosaic_thread_pool: as small as it can be, and right. Each run of `parallel` wakes all
   threads, which take parts under a mutex until none is left. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { WORKERS = 3 };

struct pthread_pool {
    pthread_mutex_t mutex;
    pthread_cond_t work, done;
    pthread_t threads[WORKERS];
    void (*task)(void *argument, int64_t part);
    void *argument;
    int64_t next, parts, unfinished;
    int64_t ran[WORKERS + 1]; /* parts that each thread has run, the caller's last */
    int stop;
};

/* Take parts while there are any; the mutex is held before and after. */
static void take(struct pthread_pool *pool, int number) {
    while (pool->next < pool->parts) {
        int64_t part = pool->next++;
        void (*task)(void *, int64_t) = pool->task;
        void *argument = pool->argument;
        pthread_mutex_unlock(&pool->mutex);
        task(argument, part);
        pthread_mutex_lock(&pool->mutex);
        pool->ran[number]++;
        if (--pool->unfinished == 0) pthread_cond_signal(&pool->done);
    }
}

struct worker {
    struct pthread_pool *pool;
    int number;
};

static void *work(void *context) {
    struct worker *worker = context;
    struct pthread_pool *pool = worker->pool;
    pthread_mutex_lock(&pool->mutex);
    while (!pool->stop) {
        take(pool, worker->number);
        if (!pool->stop) pthread_cond_wait(&pool->work, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
    return 0;
}

static void pool_start(struct pthread_pool *pool, struct worker *workers) {
    int i;
    memset(pool, 0, sizeof *pool);
    pthread_mutex_init(&pool->mutex, 0);
    pthread_cond_init(&pool->work, 0);
    pthread_cond_init(&pool->done, 0);
    for (i = 0; i < WORKERS; i++) {
        workers[i].pool = pool;
        workers[i].number = i;
        pthread_create(&pool->threads[i], 0, work, &workers[i]);
    }
}

static void pool_stop(struct pthread_pool *pool) {
    int i;
    pthread_mutex_lock(&pool->mutex);
    pool->stop = 1;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (i = 0; i < WORKERS; i++) pthread_join(pool->threads[i], 0);
}

/* What the model calls. */
static void pool_parallel(void *context, void (*task)(void *argument, int64_t part), void *argument, int64_t parts) {
    struct pthread_pool *pool = context;
    pthread_mutex_lock(&pool->mutex);
    pool->task = task;
    pool->argument = argument;
    pool->next = 0;
    pool->parts = pool->unfinished = parts;
    pthread_cond_broadcast(&pool->work);
    take(pool, WORKERS);
    while (pool->unfinished) pthread_cond_wait(&pool->done, &pool->mutex);
    pool->parts = 0;
    pthread_mutex_unlock(&pool->mutex);
}
