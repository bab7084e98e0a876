import * as cdk from 'aws-cdk-lib';
import * as include from 'aws-cdk-lib/cloudformation-include';
import * as iam from 'aws-cdk-lib/aws-iam';
import * as kms from 'aws-cdk-lib/aws-kms';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as assets from 'aws-cdk-lib/aws-s3-assets';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';

declare const __dirname: string;

/** What the function's settings may be; `docs/settings.md` has their ranges. Left out, each is as the template says. */
export interface SmartRedriverSettings {
  /** Acts, only reports what it would do, or does nothing. */
  readonly mode?: 'automatic' | 'dry_run' | 'paused';
  /** Strikes before a letter is parked. */
  readonly maxAttempts?: number;
  /** From a letter's first strike to its last chance. */
  readonly lastChance?: cdk.Duration;
  /** Without a working consumer, before a letter is parked. */
  readonly giveUp?: cdk.Duration;
  /** The first backoff of a letter. */
  readonly baseDelay?: cdk.Duration;
  /** The longest backoff of a letter. */
  readonly maxDelay?: cdk.Duration;
  /** Letters that await a verdict at first. */
  readonly initialWindow?: number;
  /** Letters that await a verdict at most. */
  readonly maxWindow?: number;
  /** Letters a second, 0 for no limit. */
  readonly maxRate?: number;
  /** What the consumer needs; queues that share it tell each other that it is well again. */
  readonly downstream?: string;
  /** Failed batches in a row that open the circuit. */
  readonly failureThreshold?: number;
  /** Canaries in a row that close it. */
  readonly successThreshold?: number;
  /** The share of a batch that makes it a failure. */
  readonly failureRate?: number;
  /** Letters of a canary. */
  readonly canarySize?: number;
  /** Of the function, in MiB. */
  readonly memoryMib?: number;
}

export interface SmartRedriverProps {
  /** A standard queue whose failed messages go to the DLQ. */
  readonly sourceQueue: sqs.IQueue;
  /** Where letters are. Nothing else consumes it. */
  readonly deadLetterQueue: sqs.IQueue;
  /** The key of both queues; without it that of the DLQ, as far as the app knows it. */
  readonly key?: kms.IKey;
  readonly settings?: SmartRedriverSettings;
  /** ARNs of alarms of the consumer's: back to OK, each sends a canary at once. */
  readonly recoveryAlarms?: string[];
  /** Told what can wait. */
  readonly warningEmail?: string;
  /** Told what can't wait. */
  readonly pagingEmail?: string;
  /** Where alarms link to: a copy of `docs/runbook.md` that people can open. */
  readonly runbookUrl?: string;
}

/** The re-driver of one DLQ: the release's CloudFormation template, with its function's code as an asset. */
export class SmartRedriver extends Construct {
  /** Makes the passes. */
  readonly function: lambda.CfnFunction;
  /** Holds poison pills, for a person. */
  readonly parkingLot: sqs.CfnQueue;
  /** Takes the reports of consumers. */
  readonly outcomeQueue: sqs.CfnQueue;

  constructor(scope: Construct, id: string, props: SmartRedriverProps) {
    super(scope, id);
    if (props.sourceQueue.fifo || props.deadLetterQueue.fifo) {
      throw new Error(`${this.node.path}: FIFO queues are served by the Python construct alone`);
    }
    const code = new assets.Asset(this, 'Code', { path: `${__dirname}/../template/function.zip` });
    const key = props.key ?? props.deadLetterQueue.encryptionMasterKey;
    const declared = (require('../template/template.json') as Template).Parameters;
    const parameters: { [name: string]: string | string[] } = {};
    for (const [name, one] of Object.entries(declared)) {
      // What may be secret is said when the stack is deployed.
      if (one.Default !== undefined && !one.NoEcho) parameters[name] = one.Default;
    }
    Object.assign(parameters, {
      SourceQueueArn: props.sourceQueue.queueArn,
      DeadLetterQueueArn: props.deadLetterQueue.queueArn,
      CodeBucket: code.s3BucketName,
      CodeKey: code.s3ObjectKey,
      KeyArn: key?.keyArn ?? '',
      WarningEmail: props.warningEmail ?? '',
      PagingEmail: props.pagingEmail ?? '',
      RecoveryAlarms: props.recoveryAlarms ?? [''],
      RunbookUrl: props.runbookUrl ?? parameters.RunbookUrl,
    });
    for (const [name, value] of Object.entries(props.settings ?? {})) {
      const capital = name[0].toUpperCase() + name.slice(1);
      if (value instanceof cdk.Duration) parameters[`${capital}Seconds`] = `${value.toSeconds()}`;
      else if (value !== undefined) parameters[capital] = `${value}`;
    }
    const template = new include.CfnInclude(this, 'Template', {
      templateFile: `${__dirname}/../template/template.json`,
      parameters,
      preserveLogicalIds: false,
    });
    decide(template, 'HasKey', key !== undefined);
    decide(template, 'HasDownstream', Boolean(props.settings?.downstream));
    decide(template, 'HasWarningEmail', Boolean(props.warningEmail));
    decide(template, 'HasPagingEmail', Boolean(props.pagingEmail));
    // The command finds a re-driver by an output that ends so, and calls it by what is before.
    const place = this.node.path.slice(cdk.Stack.of(this).node.path.length).replace(/[^A-Za-z0-9]/g, '');
    template.getOutput('Redriver').overrideLogicalId(`${place.replace(/Redriver$/, '')}Redriver`);
    const only = <T>(logicalId: string) => template.getResource(logicalId) as unknown as T;
    const names = require('../template/names.json') as { [name: string]: string };
    this.function = only<lambda.CfnFunction>(names.function);
    this.parkingLot = only<sqs.CfnQueue>(names.parkingLot);
    this.outcomeQueue = only<sqs.CfnQueue>(names.outcomeQueue);
  }

  /** Let a consumer report outcomes, and park what can never succeed. */
  grantReport(consumer: iam.IGrantable): void {
    const resources = [this.outcomeQueue.attrArn, this.parkingLot.attrArn];
    const allowed = new iam.PolicyStatement({ actions: ['sqs:SendMessage'], resources });
    consumer.grantPrincipal.addToPrincipalPolicy(allowed);
  }
}

interface Template {
  readonly Parameters: { readonly [name: string]: { readonly Default?: string; readonly NoEcho?: boolean } };
}

/** Leave out what is not asked for: an app knows what a template finds out when it is deployed. */
function decide(template: include.CfnInclude, name: string, isGiven: boolean): void {
  const condition = template.getCondition(name);
  for (const one of template.node.children) {
    if (!(one instanceof cdk.CfnResource) || one.cfnOptions.condition !== condition) continue;
    if (isGiven) one.cfnOptions.condition = undefined;
    else template.node.tryRemoveChild(one.node.id);
  }
  condition.node.scope?.node.tryRemoveChild(condition.node.id);
}

declare function require(name: string): unknown;
