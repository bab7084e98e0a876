/** Powertools' batch processors for SQS, which report outcomes and park what can never succeed. Only this module needs Powertools. */
import {
  BatchProcessor,
  EventType,
  SqsFifoMessageGroupShortCircuitError,
  SqsFifoPartialProcessorAsync,
  SqsFifoShortCircuitError,
} from "@aws-lambda-powertools/batch";
import type { BaseRecord, EventSourceDataClassTypes, FailureResponse, SuccessResponse } from "@aws-lambda-powertools/batch/types";
import type { LambdaRecord } from "./delivery.js";
import { type Batch, Reporter } from "./reporter.js";

/** A call is given up within a second; Lambda has to be answered after it. */
const LONGEST_CALL_MILLIS = 1_200;

/** Carries a failure out of Powertools' own method, which can't wait. */
class Deferred {
  constructor(
    readonly record: EventSourceDataClassTypes,
    readonly error: Error,
  ) {}
}

type Constructor = new (...given: any[]) => BatchProcessor;

/** Powertools' processor, which stays as it is but for what is parked. */
function reporting<Base extends Constructor>(base: Base, reporter: () => Reporter) {
  return class extends base {
    readonly reporter = reporter();
    #batch: Batch = this.reporter.batch();

    override prepare(): void {
      this.#batch = this.reporter.batch(() => this.#hasTime());
      super.prepare();
    }

    override async process(): Promise<(SuccessResponse | FailureResponse)[]> {
      try {
        return await super.process();
      } finally {
        await this.#batch.send(this.options?.context?.awsRequestId);
      }
    }

    override async processRecord(record: BaseRecord): Promise<SuccessResponse | FailureResponse> {
      try {
        return await super.processRecord(record);
      } catch (deferred) {
        if (!(deferred instanceof Deferred)) throw deferred;
        if (await this.#batch.failed(record as unknown as LambdaRecord, deferred.error)) {
          return super.successHandler(deferred.record, undefined);
        }
        return super.failureHandler(deferred.record, deferred.error ?? new Error(String(deferred.error)));
      }
    }

    override successHandler(record: EventSourceDataClassTypes, result: unknown): SuccessResponse {
      this.#batch.succeeded(record as LambdaRecord);
      return super.successHandler(record, result);
    }

    override failureHandler(record: EventSourceDataClassTypes, error: Error): FailureResponse {
      const isUntried = error instanceof SqsFifoShortCircuitError || error instanceof SqsFifoMessageGroupShortCircuitError;
      if (isUntried) return super.failureHandler(record, error);
      throw new Deferred(record, error);
    }

    #hasTime(): boolean {
      return this.options!.context!.getRemainingTimeInMillis() >= LONGEST_CALL_MILLIS;
    }
  };
}

/** Powertools' `BatchProcessor` for a standard queue. */
export function reportingProcessor(reporter = Reporter.fromEnv()): BatchProcessor {
  return new (reporting(BatchProcessor, () => reporter))(EventType.SQS);
}

/** Powertools' `SqsFifoPartialProcessorAsync`, for a FIFO queue. */
export function reportingFifoProcessor(reporter = Reporter.fromEnv()): SqsFifoPartialProcessorAsync {
  const processor: BatchProcessor = new (reporting(SqsFifoPartialProcessorAsync, () => reporter))();
  return processor as SqsFifoPartialProcessorAsync;
}
